import type { IncomingMessage, ServerResponse } from 'node:http';
import type { FastifyBaseLogger, FastifyInstance, RawServerDefault } from 'fastify';
import type { ZodTypeProvider } from 'fastify-type-provider-zod';
import type { Ingest } from '../capture/ingest.ts';
import type { TransformEvents } from '../capture/transform.ts';
import type { Config } from '../config.ts';
import type { Listener } from '../db/listen.ts';
import type { Pool } from '../db/pool.ts';
import type { Egress } from '../egress/egress.ts';
import type { ExportCommandDependencies } from '../exports/commands/dependencies.ts';
import type { Parser } from '../hog/parser/index.ts';
import type { Schedules } from '../schedules/schedules.ts';
import type { Keyring } from '../secrets/envelope.ts';
import type { Logger } from '../telemetry/logger.ts';
import type { Registry } from '../telemetry/metrics.ts';

/** The server that routes are added to; the types of their handlers follow from their schemas. */
export type App = FastifyInstance<
  RawServerDefault,
  IncomingMessage,
  ServerResponse,
  FastifyBaseLogger,
  ZodTypeProvider
>;

/** What the HTTP side works with; `main.ts` makes it, tests make their own. */
export interface ApiDependencies {
  config: Config;
  pool: Pool;
  /** Hears of changes by other processes. */
  listener: Listener;
  schedules: Schedules;
  /** Where captured events go; its promise is the acknowledgement. */
  ingest: Pick<Ingest, 'submit'>;
  /** What changes captured events before they are stored. */
  transform?: TransformEvents | undefined;
  /** Reads what people write in Hog and HogQL. */
  parser: Parser;
  /** The way out, for tests of destinations. */
  egress: Egress;
  /** Seals the secrets of destinations; without it none can be stored. */
  keyring: Keyring | undefined;
  logger: Logger;
  registry: Registry;
  /** Whether the database is at this code's version; until then, only health is answered. */
  isPrepared: () => boolean;
  /** Whether the process is on its way out: readiness says no, requests in flight are finished. */
  isDraining: () => boolean;
  /** How long a client may send nothing in the middle of a body. */
  bodyIdleMilliseconds?: number;
}

/** What the routes of batch exports work with: what their commands need, and where the API is, for links. */
export interface ExportRouteDependencies extends ExportCommandDependencies {
  publicUrl: string;
}

export const exportRouteDependencies = (deps: ApiDependencies): ExportRouteDependencies => {
  const { pool, parser, keyring, egress, logger, schedules, config } = deps;
  const { SLUICE_EXPORT_ROOT: exportRoot, SLUICE_PUBLIC_URL: publicUrl } = config;
  return { pool, parser, keyring, egress, logger, temporal: schedules.exports, exportRoot, publicUrl };
};
