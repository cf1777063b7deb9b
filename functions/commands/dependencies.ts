import type { Pool } from '../../db/pool.ts';
import type { Turns } from '../../db/turns.ts';
import type { Keyring } from '../../secrets/envelope.ts';
import type { FunctionCompiler } from '../compiler.ts';
import type { Elsewhere } from '../surroundings.ts';
import type { Template } from '../templates/template.ts';

/** What the commands of functions need. Each command takes a part of it. */
export interface FunctionCommandDependencies extends Elsewhere {
  pool: Pool;
  compiler: FunctionCompiler;
  /** The turns of projects at the compiler. */
  compiling: Turns;
  /** The keys for secret inputs. Without it no secret can be stored. */
  keyring: Keyring | undefined;
  /** Finds a template by its id. */
  template: (id: string) => Template | undefined;
  /** How many functions a project may have. */
  mostFunctions: number;
}
