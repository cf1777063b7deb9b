// What is sent to the server for a function in files, and what its answer means for these files.

import { RemoteRefusal } from '../access.ts';
import { type Definition, type FileInput, namedVariables } from './definition.ts';
import type { LocalFunction } from './files.ts';

export type Environment = Readonly<Record<string, string | undefined>>;

/** Lists the secret inputs whose variable is not set, as sentences. An empty variable counts as not set. */
export const missingVariables = ({ definition, definitionFile }: LocalFunction, env: Environment): string[] =>
  namedVariables(definition)
    .filter(({ variable }) => !env[variable])
    .map(({ path, variable }) => `${definitionFile}: ${path}: the variable ${variable} is not set.`);

/** Builds the body that creates or changes a function. A secret whose variable is not set keeps its value. */
export function payloadOf({ definition, program }: LocalFunction, env: Environment): Record<string, unknown> {
  const { id, template_id: template, ...rest } = definition;
  const sent = (inputs: Definition['inputs']) =>
    Object.fromEntries(Object.entries(inputs).map(([key, one]) => [key, sentInput(one, env)]));
  const isFromTemplate = id === undefined && template !== undefined;
  return {
    ...rest,
    ...(isFromTemplate ? { template_id: template } : {}),
    hog: program,
    inputs: sent(rest.inputs),
    mappings:
      rest.mappings?.map((one) => ({ ...one, ...(one.inputs ? { inputs: sent(one.inputs) } : {}) })) ?? null,
  };
}

function sentInput({ env: variable, ...input }: FileInput, env: Environment): object {
  if (variable === undefined) return input;
  const value = env[variable];
  return value ? { ...input, value } : { secret: true };
}

const PLACE = /\(line (\d+), column (\d+)\)|\((\d+):(\d+)\)/;

const ONE_SENTENCE = /^(Hog code has errors\.|Error in TypeScript code) ([\s\S]*)$/;

/** Says what is wrong with a function in the way of compilers: the file, the line, the column, and below it the excerpt. */
export function faultText({ programFile, definitionFile }: LocalFunction, refusal: RemoteRefusal): string {
  const field = refusal.field?.replace(/^configuration__/, '') ?? null;
  // Where errors have no reason of their own, it comes after the message.
  const [, told = refusal.message, joined] = refusal.message.match(ONE_SENTENCE) ?? [];
  const [message, reason] = refusal.reason === null ? [told, joined] : [refusal.message, refusal.reason];
  const [first = '', ...excerpt] = (reason ?? '').split('\n');
  const below = excerpt.map((line) => `\n    ${line}`).join('');
  if (field === 'hog') {
    const [text = '', line, column, tsLine, tsColumn] = first.match(PLACE) ?? message.match(PLACE) ?? [];
    const place = text === '' ? '' : `:${line ?? tsLine}:${column ?? tsColumn}`;
    const said = first.replace(text, '').trim();
    return `${programFile}${place}: ${said === '' ? message : `${message} ${said}`}${below}`;
  }
  const where = field === null ? '' : `${field.replaceAll('__', '.')}: `;
  const more = first !== '' && !message.includes(first.replace(PLACE, '').trim()) ? ` ${first}` : '';
  return `${definitionFile}: ${where}${message}${more}${below}`;
}

/** Answers whether an error is about the function itself, and not about access, limits or the server. */
export const isAboutFunction = (error: unknown): error is RemoteRefusal =>
  error instanceof RemoteRefusal && error.status === 400;
