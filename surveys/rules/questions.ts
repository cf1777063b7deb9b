export interface Question {
  id?: string | undefined;
  type: string;
  branching?: Branching | null | undefined;
  [field: string]: unknown;
}

/** Where to go after a question. `responseValues` has the index of a question, or `end`, for each answer. */
export interface Branching {
  type: string;
  index?: number | undefined;
  responseValues?: Record<string, unknown> | undefined;
}

/** Finds a question that leads to one that is not there: its index, and where it leads. */
export function lostBranch(questions: readonly Question[]): { question: number; to: unknown } | undefined {
  for (const [question, { branching }] of questions.entries()) {
    const targets =
      branching?.type === 'specific_question'
        ? [branching.index]
        : branching?.type === 'response_based'
          ? Object.values(branching.responseValues ?? {})
          : [];
    const to = targets.find((one) => one !== 'end' && !isPlace(one, questions.length));
    if (to !== undefined || targets.includes(undefined)) return { question, to };
  }
  return undefined;
}

const isPlace = (value: unknown, count: number): boolean =>
  Number.isInteger(value) && (value as number) >= 0 && (value as number) < count;
