import type { Pool } from '../../db/pool.ts';
import type { Egress } from '../../egress/egress.ts';
import type { Parser } from '../../hog/parser/index.ts';
import type { Keyring } from '../../secrets/envelope.ts';
import type { ExportTemporal } from '../temporal.ts';

/** What the commands of batch exports work with. Each command picks what it needs. */
export interface ExportCommandDependencies {
  pool: Pool;
  /** Reads filters and columns, which people write in Hog and HogQL. */
  parser: Parser;
  /** Seals and opens the secrets of destinations. Without it no secret can be stored. */
  keyring: Keyring | undefined;
  /** The way out, for tests of destinations. */
  egress: Egress;
  /** The directory that exports to files write below. */
  exportRoot: string;
  temporal: ExportTemporal;
  /** Hears what does not fail the command. */
  logger: { warn(about: object, message: string): void };
}
