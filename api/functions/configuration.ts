import { newContent } from '../../functions/commands/create.ts';
import { compileContent, mergeContent } from '../../functions/commands/prepare.ts';
import type { ShownFunctionRow } from '../../functions/rows/functions.ts';
import type { CompiledContent } from '../../functions/rules/definition.ts';
import type { FunctionTypeName } from '../../functions/rules/types.ts';
import { Refusal } from '../../refusals.ts';
import { ApiError, errors } from '../errors.ts';
import { validate } from '../validation.ts';
import type { FunctionRouteDependencies } from './dependencies.ts';
import { wholeFunction } from './function-schema.ts';

/** An error of the configuration in the form that clients know: nested by field. */
function nested(error: unknown): unknown {
  const told =
    error instanceof ApiError && error.status === 400
      ? { attr: error.body.attr, detail: error.message }
      : error instanceof Refusal && error.kind === 'invalid'
        ? { attr: error.field, detail: error.reason ? `${error.message} ${error.reason}` : error.message }
        : undefined;
  if (!told) return error;
  return errors.validation(
    'invalid_input',
    told.detail,
    ['configuration', told.attr].filter(Boolean).join('__'),
  );
}

/** Compiles a function that is tried and not stored. What it leaves out is taken from the stored one, if there is one. */
export async function compileConfiguration(
  deps: FunctionRouteDependencies,
  given: Record<string, unknown>,
  { projectId, current }: { projectId: number; current: ShownFunctionRow | undefined },
  signal: AbortSignal,
): Promise<{ type: FunctionTypeName; compiled: CompiledContent }> {
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
