// The API process. It serves HTTP until it is told to stop.
import type { ServerResponse } from 'node:http';
import path from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { createActionCompiler } from '../actions/compiler.ts';
import { addPlaces } from '../capture/add-places.ts';
import { createDefinitions } from '../capture/definitions/definitions.ts';
import { createIngest } from '../capture/ingest.ts';
import { createLargeBodies } from '../capture/large/bodies.ts';
import { inSteps } from '../capture/transform.ts';
import { apiPools } from '../config.ts';
import { createListener } from '../db/listen.ts';
import { Turns } from '../db/turns.ts';
import { createEgress } from '../egress/egress.ts';
import { createFunctionCompiler } from '../functions/compiler.ts';
import { createFollower } from '../functions/dispatch/follower.ts';
import { createRunner } from '../functions/runner.ts';
import { createTransformer } from '../functions/transform/transformer.ts';
import { openGeoip } from '../geoip/geoip.ts';
import { EXIT_CONFIGURATION, type Role, runProcess } from '../lifecycle.ts';
import { COMPILER_DEFAULTS, createCompiler } from '../models/index.ts';
import { PRODUCTS } from '../products.ts';
import { createBackgroundQueries } from '../queries/background/runner.ts';
import { createQueryCompiler } from '../queries/compiler.ts';
import { ResultPlaces } from '../queries/result-places.ts';
import { createSchedules } from '../schedules/schedules.ts';
import { createRegistry, serveMetrics } from '../telemetry/metrics.ts';
import { mergeHook } from '../tenancy/product.ts';
import { createSqlKeeper } from '../tenancy/sql-keeper.ts';
import { buildApp } from './app.ts';
import { openCopies } from './copies.ts';
import { integrationsOf } from './functions/dependencies.ts';
import { listen } from './listen.ts';
import { answersInBackground } from './queries/background.ts';
import { queryDependencies } from './queries/query.ts';

const DRAIN_PAUSE = 25;
/** Milliseconds that the health checks wait for a database that takes long to prepare. */
const FIRST_LOOK = 10_000;
/** Milliseconds after which a query is given up and Postgres counts as unavailable. Postgres gives up earlier. */
const QUERY_PATIENCE = 30_000;
/** The same for what a public request looks up. Its client does not wait for long. */
const LANE_PATIENCE = 8_000;
/** How often it is checked that changes are still heard of, so that a loss that nobody tells of costs seconds only. */
const LISTEN_CHECK = 2_000;
/** The bounds of a pool for queries whose cost their callers decide, in milliseconds. */
const COSTLY = { lock: 2_000, statement: 20_000, transaction: 60_000, clientCheck: 1_000 };
/** How long Postgres lets each pool work and wait, in milliseconds. docs/operations.md lists them. */
const LIMITS = {
  management: { lock: 5_000, statement: 20_000, transaction: 30_000 },
  reading: COSTLY,
  reader: COSTLY,
  // Ten minutes for reading each row and for writing them down, and some more.
  background: { ...COSTLY, statement: 620_000, transaction: 1_260_000 },
  // Each query has a time limit of its own.
  results: { lock: COSTLY.lock, clientCheck: COSTLY.clientCheck },
  ingest: { lock: 10_000, statement: 60_000, transaction: 120_000 },
  lane: { lock: 2_000, statement: 5_000, transaction: 10_000 },
} as const;
/** The pools whose queries make way for those of other pools. */
const MAKE_WAY = new Set<keyof typeof LIMITS>(['reading', 'reader', 'background', 'results']);

await runProcess('api', async ({ config, logger, isDraining, stopping, database, keys }) => {
  const away = Promise.withResolvers<void>();
  const preparing = database.prepare(away.resolve);
  // As a rule the database is there. Then the first connection, too, is made by the role that it is for.
  const late = pause(FIRST_LOOK, undefined, { ref: false });
  await Promise.race([preparing.catch(() => undefined), away.promise, late]);
  const geoip = config.SLUICE_GEOIP_DATABASE
    ? await openGeoip({ file: config.SLUICE_GEOIP_DATABASE, logger })
    : undefined;
  const sizes = apiPools(config);
  const connect = (name: string, kind: keyof typeof LIMITS, patience?: number, role: Role = 'server') =>
    database.connect(name, {
      role,
      size: sizes[kind],
      limits: LIMITS[kind],
      makesWay: MAKE_WAY.has(kind),
      ...(patience === undefined ? {} : { patience }),
    });
  // Each kind of work has connections of its own, so that none waits behind another.
  const pool = connect('api', 'management', QUERY_PATIENCE);
  const readingPool = connect('reading', 'reading', QUERY_PATIENCE);
  // What is compiled from texts of users runs as a role that sees one project at a time.
  const reader = connect('reader', 'reader', QUERY_PATIENCE, 'reader');
  const background = connect('background', 'background', undefined, 'reader');
  const resultPool = connect('results', 'results', undefined, 'reader');
  const lanePool = connect('lane', 'lane', LANE_PATIENCE);
  const ingestPool = connect('ingest', 'ingest');
  const listener = createListener({
    url: database.addressOf('server'),
    name: 'listener',
    checkEvery: LISTEN_CHECK,
    onError: (error) =>
      logger.warn({ err: error }, 'the connection that listens for changes broke; reconnecting'),
  });
  const copies = await openCopies({ directory: path.join(config.SLUICE_DATA_DIR, 'copies'), logger });
  const schedules = createSchedules(config, logger);
  const compiler = createCompiler();
  const queryCompiler = createQueryCompiler();
  const actionCompiler = createActionCompiler();
  const functionCompiler = createFunctionCompiler();
  const functionRunner = createRunner({ geoip: config.SLUICE_GEOIP_DATABASE || undefined });
  // A project has one thread at most, and several that use much share one, so another one always finds a free thread soon.
  const compiling = new Turns({ atOnce: COMPILER_DEFAULTS.threads, perAsker: 1, kept: 1 });
  // A client may take its file slowly, so a project has one at once.
  const resultPlaces = new ResultPlaces({ atOnce: sizes.results, perAsker: 1, kept: 1 });
  const egress = createEgress({ allow: config.SLUICE_EGRESS_ALLOW });
  const { keyring } = keys;
  const registry = createRegistry('api');
  database.registerMetrics(registry);
  const definitions = createDefinitions({ pool, logger });
  const ingest = createIngest({
    pool: ingestPool,
    registry,
    logger,
    personsMerged: mergeHook(PRODUCTS),
    follower: createFollower({ pool, logger }),
    names: definitions,
  });
  let prepared = false;
  const isPrepared = () => prepared;
  const transformer = createTransformer({
    ...{ pool: lanePool, logger, registry, keyring, compiler: functionCompiler, place: geoip?.place },
    integrations: integrationsOf({ pool, keyring, egress }),
    ...{ site: config.SLUICE_PUBLIC_URL, geoip: config.SLUICE_GEOIP_DATABASE || undefined },
  });
  const transform = inSteps(geoip && addPlaces(geoip.place), transformer.transform);
  const largeBodies = createLargeBodies({ geoip: config.SLUICE_GEOIP_DATABASE || undefined });
  const asking = { pool, reader, queryCompiler, compiling };
  const backgroundQueries = createBackgroundQueries({
    ...{ pool, logger, atOnce: sizes.background },
    answer: answersInBackground(queryDependencies(asking), background),
  });
  const deps = {
    config,
    products: PRODUCTS,
    pool,
    readingPool,
    lanePool,
    reader,
    resultPool,
    resultPlaces,
    copies,
    listener,
    ingest,
    definitions,
    transform,
    largeBodies,
    flagPlace: geoip?.flagProperties,
    schedules,
    compiler,
    queryCompiler,
    background: backgroundQueries,
    actionCompiler,
    functionCompiler,
    functionRunner,
    compiling,
    egress,
    keyring,
    logger,
    registry,
    isPrepared,
    isDraining,
    stopping,
  };
  const app = await buildApp(deps);
  let answering = 0;
  const answered = () => {
    answering -= 1;
  };
  app.server.on('request', (_request, response: ServerResponse) => {
    answering += 1;
    response.on('close', answered);
  });
  const metrics =
    config.SLUICE_METRICS_PORT > 0
      ? await serveMetrics(registry, { host: config.SLUICE_HOST, port: config.SLUICE_METRICS_PORT })
      : undefined;
  const close = await listen(app, { host: config.SLUICE_HOST, port: config.PORT }).catch((error) => {
    throw error.code === 'EADDRINUSE'
      ? new Error(`Port ${config.PORT} (PORT) is in use by another program; free it or set another one.`)
      : error;
  });
  logger.info({ port: config.PORT }, 'the API listens');

  // Until the database is reachable and up to date, requests are answered with 503.
  const announcing = preparing.then(() => keys.announce(pool));
  const sqlKeeper = createSqlKeeper({ pool, logger });
  announcing.then(
    () => {
      prepared = true;
      backgroundQueries.start();
      sqlKeeper.start();
    },
    (error) => {
      if (stopping.aborted) return;
      logger.fatal(error.message);
      process.exit(EXIT_CONFIGURATION);
    },
  );

  return {
    async stop() {
      // New requests are answered as long as others are in flight. /_readyz tells balancers to go elsewhere.
      const end = Date.now() + (config.SLUICE_SHUTDOWN_SECONDS * 1000) / 2;
      while (answering > 0 && Date.now() < end) await pause(DRAIN_PAUSE);
      await close();
      await copies.close();
      metrics?.close();
      geoip?.close();
      await Promise.all([ingest.close(), transformer.close(), largeBodies.close()]);
      await definitions.close();
      await backgroundQueries.close();
      await schedules.close();
      await Promise.all(
        [compiler, queryCompiler, actionCompiler, functionCompiler, functionRunner, egress].map((one) =>
          one.close(),
        ),
      );
      await sqlKeeper.close();
      await keys.withdraw();
      const pools = [pool, readingPool, reader, background, resultPool, lanePool, ingestPool];
      await Promise.all([...pools.map((one) => one.end()), listener.close()]);
    },
  };
});
