import { setTimeout as pause } from 'node:timers/promises';
import { nextTurn } from '../../db/loop-turns.ts';
import type { Pool } from '../../db/pool.ts';
import { type Keyring, SecretError } from '../../secrets/envelope.ts';
import type { Logger } from '../../telemetry/logger.ts';
import type { Work } from '../../tenancy/product.ts';
import { type FunctionCompiler, FunctionCompilerBusyError } from '../compiler.ts';
import { openInputs } from '../reads/secrets.ts';
import { keyOf, pageDependent, storeCompiled, type VersionedFunction } from '../rows/functions.ts';
import { FunctionError } from '../rules/definition.ts';
import { type Elsewhere, isOutOfDate, surroundingsOf } from '../surroundings.ts';

/** What the runs of functions and their upkeep need. */
export interface FunctionRunDependencies extends Elsewhere {
  pool: Pool;
  compiler: FunctionCompiler;
  keyring: Keyring | undefined;
  logger: Pick<Logger, 'warn' | 'info'>;
}

const PAGE = 100;
const AFTER_BUSY = 1_000;

/**
 * Compiles functions again whose filters name an action, a cohort or the project's test accounts, when these have changed. Where
 * that fails, the last version goes on, and the function says why.
 */
export async function recompileFunctions(
  deps: FunctionRunDependencies,
  { signal, beat }: Work,
): Promise<number> {
  let compiled = 0;
  let after = null;
  for (;;) {
    const page: VersionedFunction[] = await pageDependent(deps.pool, after, PAGE);
    for (const one of page) {
      await nextTurn();
      signal.throwIfAborted();
      beat();
      if (await recompile(deps, one, signal)) compiled += 1;
    }
    const last = page.at(-1);
    if (!last || page.length < PAGE) return compiled;
    after = keyOf(last.row);
  }
}

async function recompile(
  deps: FunctionRunDependencies,
  one: VersionedFunction,
  signal: AbortSignal,
): Promise<boolean> {
  const { row } = one;
  const { project_id: projectId, compiled_from: origins } = row;
  if (!origins || !(await isOutOfDate(deps, projectId, row, origins))) return false;
  const { surroundings, origins: found } = await surroundingsOf(deps, projectId, row);
  try {
    const secrets = openInputs(deps.keyring, row);
    const source = { type: row.type, content: row, secrets, isEnabled: true, ...surroundings };
    const result = await deps.compiler.compile(projectId, source, signal);
    // Only filters depend on what has changed, and warnings name what filters miss. All else stays as it is.
    const filtered = row.mappings?.map((mapping, index) => {
      const filters = result.mappings?.[index]?.filters;
      return filters ? { ...mapping, filters } : mapping;
    });
    return await storeCompiled(deps.pool, one, {
      ...{ filters: result.filters, mappings: filtered ?? null, transpiled: result.transpiled },
      ...{ compiled_from: found, compile_error: null, warnings: result.warnings },
    });
  } catch (error) {
    if (error instanceof FunctionCompilerBusyError) {
      await pause(AFTER_BUSY, undefined, { signal });
      return false;
    }
    if (!(error instanceof FunctionError || error instanceof SecretError)) throw error;
    const { message } = error;
    deps.logger.warn({ functionId: row.id, message }, 'a function could not be compiled again');
    return storeCompiled(deps.pool, one, { compiled_from: found, compile_error: message });
  }
}
