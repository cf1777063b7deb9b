import type { Pool } from '../../db/pool.ts';
import type { Egress } from '../../egress/egress.ts';
import type { Parser } from '../../hog/parser/index.ts';
import type { Keyring } from '../../secrets/envelope.ts';
import type { ExportTemporal } from '../temporal.ts';

/** What the commands of batch exports need. Each command takes a part of it. */
export interface ExportCommandDependencies {
  pool: Pool;
  /** Runs what is compiled from the filters and columns of users. It reads the tables of models and nothing else. */
  reader: Pool;
  /** Parses filters and columns, which users write in HogQL. */
  parser: Parser;
  /** The keys for the secrets of destinations. Without it no secret can be stored. */
  keyring: Keyring | undefined;
  /** Outgoing connections, for tests of destinations. */
  egress: Egress;
  /** The directory that exports to files write below. */
  exportRoot: string;
  temporal: ExportTemporal;
  /** Logs what goes wrong without failing the command. */
  logger: { warn(about: object, message: string): void };
}
