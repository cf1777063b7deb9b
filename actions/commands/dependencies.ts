import type { Pool } from '../../db/pool.ts';
import type { Turns } from '../../db/turns.ts';
import type { ActionCompiler } from '../compiler.ts';

/** What the commands of actions need. */
export interface ActionCommandDependencies {
  pool: Pool;
  /** Compiles steps, which users write. */
  actionCompiler: ActionCompiler;
  /** The turns of projects at compilers. */
  compiling: Turns;
}
