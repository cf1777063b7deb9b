// Runs filters, inputs and programs. It is called in threads, which somebody ends when they take too long.
import type { Bytecode } from '../hog/bytecode/index.ts';
import { type HostOptions, hostFunctions } from '../hog/host/index.ts';
import { type Outcome, type PausedState, resume, run } from '../hog/vm/index.ts';
import {
  type MaskJob,
  type Match,
  type MatchJob,
  maskKey,
  matches,
  PROGRAM_LIMITS,
  type Surroundings,
  surroundingsIn,
} from './evaluate.ts';
import { inOrder, valueOfInput } from './input-values.ts';
import type { InputSchema, StoredInputs } from './rules/definition.ts';
import type { Frame } from './rules/frame.ts';
import type { Globals } from './rules/globals.ts';
import { MOST_PRINTED, printedText } from './rules/logs.ts';
import type { MaskKey } from './rules/masking.ts';
import type { Scanned } from './rules/tally.ts';
import { type ScanJob, scan } from './scan.ts';

export interface BeginJob {
  kind: 'begin';
  bytecode: Bytecode;
  /** In their order, with the secret ones. */
  inputs: StoredInputs;
  /** Values that stand for inputs, such as those of integrations. */
  given: Record<string, unknown>;
  globals: Globals;
  frame: Frame;
  isTransformation: boolean;
  /** The file with the locations of addresses. */
  geoip?: string | undefined;
}

export interface ResumeJob extends Omit<BeginJob, 'kind' | 'inputs' | 'given'> {
  kind: 'resume';
  state: PausedState;
  /** What the function that the program waits for returns. */
  result: unknown;
  /** How many events the program has asked to capture in the steps before. */
  captured: number;
}

/** Steps of one function for several events. */
export interface StepsJob {
  kind: 'steps';
  bytecode: Bytecode;
  inputs: StoredInputs;
  items: readonly StepItem[];
}

export interface StepItem {
  globals: Globals;
  frame: Frame;
  given: Record<string, unknown>;
  /** Answers that the program had already, when it ran before. It gets them again. */
  answers: readonly unknown[];
  /** Absent: the program begins. */
  paused?: { state: PausedState; result: unknown; captured: number; inputs: unknown };
}

/** A step of one item. `inputs` are the values of the inputs as the program sees them. */
export type ItemStep = Step & { inputs: unknown };

export type RunJob = MatchJob | BeginJob | ResumeJob | MaskJob | ScanJob | StepsJob;

/** A step of a program: until it ends, or until it waits for the host. */
export type Step = {
  /** Each line as text. */
  printed: string[];
  /** The events that the program asks to capture. */
  captured: unknown[];
  steps: number;
  milliseconds: number;
  memory: number;
} & (
  | { status: 'finished'; result: unknown }
  | { status: 'failed'; error: string; where: 'inputs' | 'program' }
  | { status: 'waits'; call: { name: string; args: unknown[] }; state: PausedState }
);
/** The first step also says what the program sees. */
export type Begun = Step & { globals: Globals };

export type RunAnswer = Match[] | Begun | Step | MaskKey | Scanned[][] | ItemStep[];

const ASYNC = ['fetch', 'sleep'];
/** Lines that a step keeps, and characters of each: more than a log shows, because secrets are still to be hidden. */
const MOST_KEPT = MOST_PRINTED + 1;
const LONGEST_KEPT = 200_000;

/** `place` finds the locations of addresses for transformations. */
export function work(job: RunJob, place?: HostOptions['place']): RunAnswer {
  switch (job.kind) {
    case 'match': {
      const around = surroundingsIn(job.frame);
      return job.filters.map((bytecode) => matches(bytecode, job.globals, around));
    }
    case 'mask':
      return maskKey(job.bytecode, job.globals, surroundingsIn(job.frame));
    case 'scan':
      return scan(job);
    case 'begin':
      return begin(job, place);
    case 'steps':
      return job.items.map((item) => stepOf(job, item));
    case 'resume':
      return resumed(job);
  }
}

function begin(job: BeginJob, place: HostOptions['place']): Begun {
  const inputs: Record<string, unknown> = {};
  // Texts that name the person are empty where there is none. Otherwise each would end the run.
  const globals = { ...(job.isTransformation ? {} : { person: null }), ...job.globals, inputs };
  const around = surroundingsIn(job.frame);
  try {
    for (const [key, input] of inOrder(job.inputs)) {
      inputs[key] = Object.hasOwn(job.given, key) ? job.given[key] : valueOfInput(input, globals, around);
    }
  } catch (error) {
    if (!(error instanceof Error)) throw error;
    const failed = { status: 'failed', error: error.message, where: 'inputs' } as const;
    return { ...failed, printed: [], captured: [], steps: 0, milliseconds: 0, memory: 0, globals };
  }
  const begun = { ...job, globals, around, captured: 0 };
  return { ...step((options) => run(job.bytecode, options), begun, place), globals };
}

/**
 * Runs an item until it ends or waits. One that ran before in another process runs again from its beginning: its clock, its
 * random numbers and what it got are the same, so it comes to the same place.
 */
function stepOf({ bytecode, inputs }: StepsJob, item: StepItem): ItemStep {
  const { globals: given, frame, paused } = item;
  const job = { bytecode, frame, isTransformation: false };
  if (paused) {
    const globals = { person: null, ...given, inputs: paused.inputs };
    const next = resumed({ ...job, globals, ...paused, state: { ...paused.state, bytecode } });
    return { ...withoutCode(next), inputs: paused.inputs };
  }
  let step: Step & { globals: Globals } = begin(
    { kind: 'begin', ...job, inputs, given: item.given, globals: given },
    undefined,
  );
  const printed = [...step.printed];
  const captured = [...step.captured];
  const { globals } = step;
  for (const result of item.answers) {
    if (step.status !== 'waits') break;
    step = { ...resumed({ ...job, globals, state: step.state, result, captured: captured.length }), globals };
    printed.push(...step.printed);
    captured.push(...step.captured);
  }
  const { globals: _globals, ...rest } = step;
  return { ...withoutCode(rest as Step), printed, captured, inputs: globals.inputs };
}

/** The code of a function is known already where the state goes to. */
const withoutCode = (step: Step): Step =>
  step.status === 'waits' ? { ...step, state: { ...step.state, bytecode: [] } } : step;

const resumed = (job: Omit<ResumeJob, 'kind'>): Step =>
  step((options) => resume(job.state, job.result, options), {
    ...job,
    around: surroundingsIn(job.frame, job.state.asyncSteps),
  });

interface Runnable extends Pick<ResumeJob, 'isTransformation' | 'globals' | 'captured'> {
  around: Surroundings;
}

function step(
  proceed: (options: Parameters<typeof run>[1]) => Outcome,
  { around, isTransformation, globals, captured: before }: Runnable,
  place?: HostOptions['place'],
): Step {
  const printed: string[] = [];
  const captured: unknown[] = [];
  const outcome = proceed({
    ...{ ...around, globals, limits: PROGRAM_LIMITS },
    asyncFunctions: isTransformation ? [] : ASYNC,
    functions: {
      ...hostFunctions(place ? { place } : {}),
      print: (...args) => {
        if (printed.length < MOST_KEPT) printed.push(printedText(args).slice(0, LONGEST_KEPT));
        return null;
      },
      postHogCapture: (given) => {
        if (isTransformation) throw new Error('posthogCapture is not supported in transformations');
        captured.push(capturedEvent(given, globals));
        if (before + captured.length > 1)
          throw new Error('postHogCapture was called more than once. Only one call is allowed per function');
        return null;
      },
    },
  });
  const { steps, milliseconds, maxMemory: memory } = outcome.usage;
  const used = { printed, captured, steps, milliseconds, memory };
  if (outcome.status === 'finished') return { ...used, status: 'finished', result: outcome.result };
  if (outcome.status === 'failed') {
    return { ...used, status: 'failed', error: outcome.error.message, where: 'program' };
  }
  return { ...used, status: 'waits', call: outcome.call, state: outcome.state };
}

const COUNT = '$hog_function_execution_count';
const MOST_EXECUTIONS = 10;

/** Completes an event that a program captures. Events count the functions that led to them, so that no circle is endless. */
function capturedEvent(given: unknown, globals: Globals): Record<string, unknown> {
  const asked = (typeof given === 'object' && given !== null ? given : {}) as Record<string, unknown>;
  if (!asked.event) throw new Error("[HogFunction] - postHogCapture call missing 'event' property");
  const event = globals.event as { distinct_id?: string; properties?: Record<string, unknown> };
  const person = globals.person as { id?: string } | undefined;
  const count = Number(event.properties?.[COUNT] ?? 0) || 0;
  if (count >= MOST_EXECUTIONS) {
    throw new Error(
      `postHogCapture was called from an event that already executed this function ${MOST_EXECUTIONS} times previously. ` +
        'To prevent unbounded infinite loops, the event was not captured.',
    );
  }
  return {
    event: asked.event,
    distinct_id: asked.distinct_id || event.distinct_id || person?.id,
    properties: { ...(asked.properties as object), [COUNT]: count + 1 },
  };
}

/** Returns the value of an input that names an integration. */
export const integrationInputs = (schemas: readonly InputSchema[]): readonly InputSchema[] =>
  schemas.filter(({ type }) => type === 'integration');
