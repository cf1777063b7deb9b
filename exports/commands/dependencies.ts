import type { Pool } from '../../db/pool.ts';
import type { Egress } from '../../egress/egress.ts';
import type { ModelCompiler } from '../../models/index.ts';
import type { Keyring } from '../../secrets/envelope.ts';
import type { ExportTemporal } from '../temporal.ts';

/** What the commands of batch exports need. Each command takes a part of it. */
export interface ExportCommandDependencies {
  pool: Pool;
  /** Compiles filters and columns, which users write. */
  compiler: ModelCompiler;
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
