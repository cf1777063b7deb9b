import { isObject } from '../../values/json-object.ts';
import { forbiddenHtml } from './html.ts';
import type { Question } from './questions.ts';

type Fields = Record<string, unknown>;

/** A field that pages would show wrongly, and why. */
export interface Unshowable {
  field: 'questions' | 'appearance';
  message: string;
}

const ADDRESS = /^[a-z0-9._%+-]+@[a-z0-9.-]+\.[a-z]{2,}$/i;
/** Says what is wrong with the place to which a question leads. */
function wrongLink(link: string): string | undefined {
  const url = URL.canParse(link) ? new URL(link) : undefined;
  if (url?.protocol === 'mailto:') {
    if (ADDRESS.test(url.pathname)) return undefined;
    return 'Invalid mailto link. Please enter a valid mailto link (e.g., mailto:example@domain.com).';
  }
  if (url?.protocol === 'https:') return undefined;
  if (/^https:/i.test(link)) return 'Invalid HTTPS URL. Please enter a valid HTTPS link.';
  return 'Link must be a URL with one of these schemes: [https, mailto]';
}

/** A question in its own language, and in others. */
function* wordings(question: Question): Generator<Fields> {
  yield question;
  const { translations } = question;
  if (isObject(translations)) yield* Object.values(translations).filter(isObject);
}

/**
 * Finds a description that has what it may not have. Pages show descriptions as HTML, unless they are told not to: by the fields
 * in the first language, and not otherwise by a translation.
 */
function wrongDescription(fields: Fields, first: Fields = fields): string | undefined {
  for (const [name, text] of Object.entries(fields)) {
    if (typeof text !== 'string' || !/description$/i.test(name)) continue;
    const type = `${name}ContentType`;
    const isText = first[type] === 'text' && (fields[type] ?? 'text') === 'text';
    const found = isText ? undefined : forbiddenHtml(text);
    if (found !== undefined) return `${name} has ${found}, which a survey may not have.`;
  }
  return undefined;
}

/** Finds what is wrong with one question. */
function wrongQuestion(question: Question): string | undefined {
  for (const wording of wordings(question)) {
    const { link, choices } = wording;
    const wrong = typeof link === 'string' && link !== '' ? wrongLink(link) : undefined;
    if (wrong !== undefined) return wrong;
    const count = Array.isArray(question.choices) ? question.choices.length : undefined;
    if (count !== undefined && Array.isArray(choices) && choices.length !== count) {
      return `A translation has ${choices.length} choices, and the question has ${count} choices: there are no partial translations.`;
    }
    const description = wrongDescription(wording, question);
    if (description !== undefined) return description;
  }
  return undefined;
}

/** Whether an answer may lead elsewhere than to the next question. */
const branches = ({ branching }: Question): boolean =>
  branching != null && branching.type !== 'next_question';

/** Finds what pages could not show, or what would be a program in them. */
export function unshowable(
  questions: readonly Question[],
  appearance: Fields | null,
): Unshowable | undefined {
  for (const [index, question] of questions.entries()) {
    const message = wrongQuestion(question);
    if (message !== undefined) return { field: 'questions', message: `Question ${index}: ${message}` };
  }
  const message = appearance === null ? undefined : wrongDescription(appearance);
  if (message !== undefined) return { field: 'appearance', message };
  if (appearance?.shuffleQuestions === true && questions.some(branches)) {
    const both = 'Question shuffling and question branching cannot be used together';
    return { field: 'appearance', message: `${both}: branches name questions by their places.` };
  }
  return undefined;
}
