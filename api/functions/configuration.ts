import { newContent } from '../../functions/commands/create.ts';
import { compileContent, mergeContent } from '../../functions/commands/prepare.ts';
import { refusing } from '../../functions/commands/refusals.ts';
import { draftedRow, draftSecrets } from '../../functions/reads/drafts.ts';
import { findDraft } from '../../functions/rows/drafts.ts';
import { keyOf, type ShownFunctionRow } from '../../functions/rows/functions.ts';
import type { CompiledContent } from '../../functions/rules/definition.ts';
import type { FunctionTypeName } from '../../functions/rules/types.ts';
import { Refusal } from '../../refusals.ts';
import { ApiError, errors } from '../errors.ts';
import { validate } from '../validation.ts';
import type { FunctionRouteDependencies } from './dependencies.ts';
import { wholeFunction } from './function-schema.ts';

/** What is tried: a configuration, or the draft of the stored function. */
interface Asked {
  configuration?: Record<string, unknown> | undefined;
  use_draft: boolean;
}

interface Subject {
  projectId: number;
  current: ShownFunctionRow | undefined;
}

export interface ToTry {
  type: FunctionTypeName;
  compiled: CompiledContent;
}

/** Joins a sentence with what says more. The sentence may have begun with the same words already. */
function joined(message: string, reason: string | null): string {
  if (!reason) return message;
  const [first = '', ...excerpt] = reason.split('\n');
  return message.includes(first) ? [message, ...excerpt].join('\n') : `${message} ${reason}`;
}

/** An error of the configuration in the form that clients know: nested by field. */
function nested(error: unknown): unknown {
  const told =
    error instanceof ApiError && error.status === 400
      ? { attr: error.body.attr, detail: error.message }
      : error instanceof Refusal && error.kind === 'invalid'
        ? { attr: error.field, detail: joined(error.message, error.reason) }
        : undefined;
  if (!told) return error;
  return errors.validation(
    'invalid_input',
    told.detail,
    ['configuration', told.attr].filter(Boolean).join('__'),
  );
}

/** Compiles a function that is tried and not stored. What it leaves out is taken from the stored one, if there is one. */
async function compileConfiguration(
  deps: FunctionRouteDependencies,
  given: Record<string, unknown>,
  { projectId, current }: Subject,
  signal: AbortSignal,
): Promise<ToTry> {
  try {
    const input = validate(wholeFunction, given);
    const { type, content } = current
      ? { type: current.type, content: mergeContent(current, input) }
      : newContent(deps, input);
    const { compiled } = await compileContent(deps, { projectId, current }, type, content, false, signal);
    return { type, compiled };
  } catch (error) {
    throw nested(error);
  }
}

/** Compiles what a request asks to try. */
export function compileAsked(
  deps: FunctionRouteDependencies,
  { configuration, use_draft: usesDraft }: Asked,
  subject: Subject,
  signal: AbortSignal,
): Promise<ToTry> {
  if (usesDraft) return compileDraft(deps, subject, signal);
  if (configuration) return compileConfiguration(deps, configuration, subject, signal);
  throw errors.validation('required', 'This field is required unless `use_draft` is true.', 'configuration');
}

/** Compiles the draft of a stored function, under the secrets that it would have. */
async function compileDraft(
  deps: FunctionRouteDependencies,
  { projectId, current }: Subject,
  signal: AbortSignal,
): Promise<ToTry> {
  const draft = current && (await findDraft(deps.pool, keyOf(current)));
  if (!current || !draft) {
    throw errors.validation('invalid_input', 'This function has no staged draft to test.', 'use_draft');
  }
  const { all: secrets } = await refusing(() => draftSecrets(deps.keyring, current, draft));
  const content = mergeContent(draftedRow(current, draft), {});
  const subject = { projectId, current, secrets };
  const { compiled } = await compileContent(deps, subject, current.type, content, false, signal);
  return { type: current.type, compiled };
}
