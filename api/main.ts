// The API process. It serves HTTP until it is told to stop.
import type { ServerResponse } from 'node:http';
import { setTimeout as pause } from 'node:timers/promises';
import { addPlaces } from '../capture/add-places.ts';
import { createIngest } from '../capture/ingest.ts';
import { createListener } from '../db/listen.ts';
import { createEgress } from '../egress/egress.ts';
import { openGeoip } from '../geoip/geoip.ts';
import { EXIT_CONFIGURATION, runProcess } from '../lifecycle.ts';
import { createCompiler } from '../models/index.ts';
import { PRODUCTS } from '../products.ts';
import { createSchedules } from '../schedules/schedules.ts';
import { parseKeyring } from '../secrets/envelope.ts';
import { createRegistry, serveMetrics } from '../telemetry/metrics.ts';
import { mergeHook } from '../tenancy/product.ts';
import { buildApp } from './app.ts';

const DRAIN_PAUSE = 25;
/** The number of transactions that capture/ingest.ts runs at once. While one waits for the disk, others are written. */
const INGEST_CONNECTIONS = 4;
/** Milliseconds after which a query is given up and Postgres counts as unavailable. */
const QUERY_PATIENCE = 30_000;

await runProcess('api', async ({ config, logger, isDraining, stopping, database }) => {
  const geoip = config.SLUICE_GEOIP_DATABASE
    ? await openGeoip({ file: config.SLUICE_GEOIP_DATABASE, logger })
    : undefined;
  const pool = database.connect('api', { patience: QUERY_PATIENCE });
  // Captured events never wait for a connection behind the management API.
  const ingestPool = database.connect('ingest', { size: INGEST_CONNECTIONS });
  const listener = createListener({
    url: database.url,
    name: 'listener',
    onError: (error) =>
      logger.warn({ err: error }, 'the connection that listens for changes broke; reconnecting'),
  });
  const schedules = createSchedules(config, logger);
  const compiler = createCompiler();
  const egress = createEgress({ allow: config.SLUICE_EGRESS_ALLOW });
  const keyring = config.SLUICE_ENCRYPTION_KEYS ? parseKeyring(config.SLUICE_ENCRYPTION_KEYS) : undefined;
  const registry = createRegistry('api');
  const ingest = createIngest({
    pool: ingestPool,
    registry,
    logger,
    personsMerged: mergeHook(PRODUCTS),
  });
  let prepared = false;
  const isPrepared = () => prepared;
  const transform = geoip && addPlaces(geoip.place);
  const deps = {
    config,
    products: PRODUCTS,
    pool,
    listener,
    ingest,
    transform,
    schedules,
    compiler,
    egress,
    keyring,
    logger,
    registry,
    isPrepared,
    isDraining,
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
  await app.listen({ host: config.SLUICE_HOST, port: config.PORT }).catch((error) => {
    throw error.code === 'EADDRINUSE'
      ? new Error(`Port ${config.PORT} (PORT) is in use by another program; free it or set another one.`)
      : error;
  });
  logger.info({ port: config.PORT }, 'the API listens');

  // Until the database is reachable and up to date, requests are answered with 503.
  database.prepare().then(
    () => {
      prepared = true;
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
      await app.close();
      metrics?.close();
      geoip?.close();
      await ingest.close();
      await schedules.close();
      await Promise.all([compiler.close(), egress.close()]);
      await Promise.all([pool.end(), ingestPool.end(), listener.close()]);
    },
  };
});
