import type { Pool } from '../../db/pool.ts';
import type { Turns } from '../../db/turns.ts';
import type { Egress } from '../../egress/egress.ts';
import type { Parser } from '../../hog/parser/index.ts';
import type { Keyring } from '../../secrets/envelope.ts';
import type { ExportTemporal } from '../temporal.ts';

/** What the commands of batch exports need. Each command takes a part of it. */
export interface ExportCommandDependencies {
  pool: Pool;
  /** Connections for queries that are compiled from texts of users; see db/reading.ts. */
  reader: Pool;
  /** Parses filters and columns, which users write in HogQL. */
  parser: Parser;
  /** The turns of projects at the parser. */
  parsing: Turns;
  /** How long the texts of one request may be read, in milliseconds. Tests make it shorter. */
  longestRead?: number;
  /** The keys for the secrets of destinations. Without it no secret can be stored. */
  keyring: Keyring | undefined;
  /** Outgoing connections, for tests of destinations. */
  egress: Egress;
  /** The directory that exports to files write below. */
  exportRoot: string;
  /** How many exports a project may have. */
  mostExports: number;
  temporal: ExportTemporal;
  /** Logs what goes wrong without failing the command. */
  logger: { warn(about: object, message: string): void };
}
