// The API process: HTTP until it is told to stop.
import type { ServerResponse } from 'node:http';
import { setTimeout as pause } from 'node:timers/promises';
import { addPlaces, openGeoip } from '../capture/geoip.ts';
import { createIngest } from '../capture/ingest.ts';
import { createPool } from '../db/pool.ts';
import { prepareDatabase } from '../db/wait.ts';
import { runProcess } from '../lifecycle.ts';
import { createSchedules } from '../schedules/schedules.ts';
import { createRegistry, serveMetrics } from '../telemetry/metrics.ts';
import { buildApp } from './app.ts';

const DRAIN_PAUSE = 25;
/** One transaction commits while the next one is written. */
const INGEST_CONNECTIONS = 2;

await runProcess('api', async ({ config, logger, isDraining, stopping }) => {
  if (!config.DATABASE_URL) {
    throw new Error('DATABASE_URL is not set. `npm start` runs a Postgres of its own; otherwise name yours.');
  }
  const geoip = config.SLUICE_GEOIP_DATABASE
    ? await openGeoip({ file: config.SLUICE_GEOIP_DATABASE, logger })
    : undefined;
  const pool = createPool({
    url: config.DATABASE_URL,
    size: config.SLUICE_DATABASE_POOL,
    name: 'api',
    onError: (error) => logger.warn({ err: error }, 'a connection to Postgres broke'),
  });
  // Captured events never wait for a connection behind the management API.
  const ingestPool = createPool({
    url: config.DATABASE_URL,
    size: INGEST_CONNECTIONS,
    name: 'ingest',
    onError: (error) => logger.warn({ err: error }, 'a connection to Postgres broke'),
  });
  const schedules = createSchedules(config, logger);
  const registry = createRegistry('api');
  const ingest = createIngest({ pool: ingestPool, registry, logger });
  let prepared = false;
  const isPrepared = () => prepared;
  const app = await buildApp({
    config,
    pool,
    ingest,
    transform: geoip && addPlaces(geoip.place),
    schedules,
    logger,
    registry,
    isPrepared,
    isDraining,
  });
  const answering = new Set<ServerResponse>();
  app.server.on('request', (_request, response: ServerResponse) => {
    answering.add(response);
    response.once('close', () => answering.delete(response));
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

  // Requests are answered from the start, with 503 until the database is there and up to date.
  prepareDatabase({
    url: config.DATABASE_URL,
    mayMigrate: config.SLUICE_MIGRATE,
    stopping,
    log: (message) => logger.info(message),
  }).then(
    () => {
      prepared = true;
    },
    (error) => {
      if (stopping.aborted) return;
      logger.fatal(error.message);
      process.exit(78);
    },
  );

  return {
    async stop() {
      // While requests are being answered, others are too, and readiness tells balancers to go elsewhere.
      const end = Date.now() + (config.SLUICE_SHUTDOWN_SECONDS * 1000) / 2;
      while (answering.size > 0 && Date.now() < end) await pause(DRAIN_PAUSE);
      await app.close();
      metrics?.close();
      geoip?.close();
      await ingest.close();
      await schedules.close();
      await Promise.all([pool.end(), ingestPool.end()]);
    },
  };
});
