import type { IncomingMessage, ServerResponse } from 'node:http';
import type { FastifyBaseLogger, FastifyInstance, RawServerDefault } from 'fastify';
import type { ZodTypeProvider } from 'fastify-type-provider-zod';
import type { ActionCompiler } from '../actions/compiler.ts';
import type { Definitions } from '../capture/definitions/definitions.ts';
import type { Ingest } from '../capture/ingest.ts';
import type { LargeBodies } from '../capture/large/bodies.ts';
import type { TransformEvents } from '../capture/transform.ts';
import type { Config } from '../config.ts';
import type { Listener } from '../db/listen.ts';
import type { Pool } from '../db/pool.ts';
import type { Turns } from '../db/turns.ts';
import type { Egress } from '../egress/egress.ts';
import type { ExportCommandDependencies } from '../exports/commands/dependencies.ts';
import type { FunctionCompiler } from '../functions/compiler.ts';
import type { Runner } from '../functions/runner.ts';
import type { ModelCompiler } from '../models/index.ts';
import type { BackgroundQueries } from '../queries/background/runner.ts';
import type { QueryCompiler } from '../queries/compiler.ts';
import type { ResultPlaces } from '../queries/result-places.ts';
import type { Schedules } from '../schedules/schedules.ts';
import type { Keyring } from '../secrets/envelope.ts';
import type { Logger } from '../telemetry/logger.ts';
import type { Registry } from '../telemetry/metrics.ts';
import type { Product } from '../tenancy/product.ts';
import type { Copies } from './copies.ts';
import type { LiveBounds } from './live-bounds.ts';

/** The server that routes are added to; the types of their handlers follow from their schemas. */
export type App = FastifyInstance<
  RawServerDefault,
  IncomingMessage,
  ServerResponse,
  FastifyBaseLogger,
  ZodTypeProvider
>;

/** What the API needs. `main.ts` creates it; tests create their own. */
export interface ApiDependencies {
  config: Config;
  /** What the API serves: their tables, their scopes. Their routes are in api/routes.ts. */
  products: readonly Product[];
  /** The connections of the management API, for statements that are short. */
  pool: Pool;
  /** Connections for queries whose cost the caller decides, and for nothing else; see db/reading.ts. */
  readingPool: Pool;
  /** Connections for what public requests look up, and for the health checks. */
  lanePool: Pool;
  /** Runs what is compiled from texts of users, and sees one project at a time. */
  reader: Pool;
  /** The same for results as files, which last as long as their clients take them. Without a `patience`. */
  resultPool: Pool;
  /** The places of projects at these connections. */
  resultPlaces: ResultPlaces;
  /** What is known of keys and flags, on disk, for a start without the database. Undefined: nothing is kept. */
  copies?: Copies | undefined;
  /** Reports what other processes change in the database. */
  listener: Listener;
  schedules: Schedules;
  /** Stores captured events. Its promise resolves when they are committed. */
  ingest: Pick<Ingest, 'submit'>;
  /** Knows which names of events and properties are not written yet. */
  definitions: Pick<Definitions, 'flush'>;
  /** Changes captured events before they are stored. */
  transform?: TransformEvents | undefined;
  /** Decodes and parses large bodies of captured events, on other threads. */
  largeBodies?: LargeBodies | undefined;
  /** The place of an address, as properties that flags know. */
  flagPlace?: ((address: unknown) => Record<string, string>) | undefined;
  /** Compiles filters and columns of exports. */
  compiler: ModelCompiler;
  /** Compiles queries. */
  queryCompiler: QueryCompiler;
  /** Answers queries for which nobody waits. */
  background: Pick<BackgroundQueries, 'wake' | 'cancel'>;
  /** Compiles the steps of actions. */
  actionCompiler: ActionCompiler;
  /** Checks and compiles functions. */
  functionCompiler: FunctionCompiler;
  /** Runs functions to try them. */
  functionRunner: Runner;
  /** The turns of projects at the compilers. */
  compiling: Turns;
  /** Connects to other servers, to test destinations. */
  egress: Egress;
  /** Encrypts the secrets of destinations. Without it, no secret can be stored. */
  keyring: Keyring | undefined;
  logger: Logger;
  registry: Registry;
  /** Returns whether the database has this version's schema. Until then only the health checks succeed. */
  isPrepared: () => boolean;
  /**
   * Returns whether the process is stopping. It then reports that it is not ready, and finishes the requests in flight.
   */
  isDraining: () => boolean;
  /** Aborted when the process is told to stop. */
  stopping?: AbortSignal | undefined;
  /** Bounds of streams of live events, where they are not the usual ones. */
  liveBounds?: Partial<LiveBounds> | undefined;
  /** How long a client may send nothing in the middle of a body. */
  bodyIdleMilliseconds?: number;
  /** How long a client may take for a piece of a file that is sent while it is made. */
  takeMilliseconds?: number;
}

/** What the routes of batch exports need: what their commands need, and the address of the API for links. */
export interface ExportRouteDependencies extends ExportCommandDependencies {
  publicUrl: string;
  /** Connections for lists whose cost the caller decides. */
  readingPool: Pool;
}

export const exportRouteDependencies = (
  deps: ApiDependencies,
): Omit<ExportRouteDependencies, 'knownCohorts'> => {
  const { pool, readingPool, reader, compiler, compiling, keyring, egress, logger, schedules, config } = deps;
  const { SLUICE_EXPORT_ROOT: exportRoot, SLUICE_PUBLIC_URL: publicUrl } = config;
  const { SLUICE_EXPORTS_PER_PROJECT: mostExports } = config;
  return {
    ...{
      pool,
      readingPool,
      reader,
      compiler,
      compiling,
      keyring,
      egress,
      logger,
      temporal: schedules.exports,
    },
    ...{ exportRoot, publicUrl, mostExports, diskOf: 'the API server' },
  };
};
