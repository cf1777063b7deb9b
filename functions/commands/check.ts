import type { FunctionRow } from '../rows/functions.ts';
import { refuseOtherType } from './change.ts';
import { newContent } from './create.ts';
import type { FunctionCommandDependencies } from './dependencies.ts';
import { compileContent, type FunctionInput, mergeContent } from './prepare.ts';

/**
 * Checks a function as if it were created or changed, and stores nothing. Throws the refusal that storing it would
 * throw. Returns what is most likely wrong although the function can be stored.
 */
export async function checkFunction(
  deps: FunctionCommandDependencies,
  projectId: number,
  current: FunctionRow | undefined,
  input: FunctionInput,
  signal?: AbortSignal,
): Promise<string[]> {
  if (current) refuseOtherType(current, input);
  const { type, content } = current
    ? { type: current.type, content: mergeContent(current, input) }
    : newContent(deps, input);
  const isEnabled = input.enabled ?? current?.enabled ?? false;
  const { compiled } = await compileContent(deps, { projectId, current }, type, content, isEnabled, signal);
  return compiled.warnings;
}
