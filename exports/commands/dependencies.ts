import type { Pool, Transaction } from '../../db/pool.ts';
import type { Turns } from '../../db/turns.ts';
import type { Limits } from '../../destinations/limits.ts';
import type { Egress } from '../../egress/egress.ts';
import type { ModelCompiler } from '../../models/index.ts';
import type { Keyring } from '../../secrets/envelope.ts';
import type { ExportTemporal } from '../temporal.ts';

/** What the commands of batch exports need. Each command takes a part of it. */
export interface ExportCommandDependencies {
  pool: Pool;
  /** Runs what is compiled from the filters and columns of users. It reads the tables of models and nothing else. */
  reader: Pool;
  /** Compiles filters and columns, which users write in HogQL. */
  compiler: ModelCompiler;
  /** The turns of projects at the compiler. */
  compiling: Turns;
  /** The keys for the secrets of destinations. Without it no secret can be stored. */
  keyring: Keyring | undefined;
  /** Outgoing connections, for tests of destinations. */
  egress: Egress;
  /** The directory that exports to files write below. */
  exportRoot: string;
  /** Finds which of these cohorts a project has. They stay until the transaction ends. */
  knownCohorts(client: Transaction, projectId: number, ids: readonly number[]): Promise<number[]>;
  /** How many exports a project may have. */
  mostExports: number;
  /** Whose disk that directory is on, for what tests of destinations say: `the API server`. */
  diskOf?: string;
  /** How long tests of destinations wait for them. Tests of Sluice make it shorter. */
  limits?: Partial<Limits>;
  temporal: ExportTemporal;
  /** Logs what goes wrong without failing the command. */
  logger: { warn(about: object, message: string): void };
}
