import type { Pool, Queryable } from '../../db/pool.ts';
import type { Turns } from '../../db/turns.ts';
import type { ActionStep } from '../../properties/index.ts';
import type { Keyring } from '../../secrets/envelope.ts';
import type { FunctionCompiler } from '../compiler.ts';
import type { Template } from '../templates/template.ts';

/** What the commands of functions need. Each command takes a part of it. */
export interface FunctionCommandDependencies {
  pool: Pool;
  compiler: FunctionCompiler;
  /** The turns of projects at the compiler. */
  compiling: Turns;
  /** The keys for secret inputs. Without it no secret can be stored. */
  keyring: Keyring | undefined;
  /** Reads the steps of the actions that filters name. */
  actionSteps: (
    queryable: Queryable,
    projectId: number,
    ids: readonly number[],
  ) => Promise<ReadonlyMap<number, readonly ActionStep[]>>;
  /** Finds a template by its id. */
  template: (id: string) => Template | undefined;
  /** How many functions a project may have. */
  mostFunctions: number;
}
