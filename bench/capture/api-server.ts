// The whole API as a server of the benchmark: the routes, decoding and parsing of api/ and capture/, and the ingest.
import { buildApp } from '../../api/app.ts';
import { createIngest } from '../../capture/ingest.ts';
import { loadConfig } from '../../config.ts';
import { createPool } from '../../db/pool.ts';
import { createSchedules } from '../../schedules/schedules.ts';
import { createLogger } from '../../telemetry/logger.ts';
import { createRegistry } from '../../telemetry/metrics.ts';

const { DATABASE_URL: url = '', ADDRESS = '' } = process.env;
const [host, port] = ADDRESS.split(':');
const config = loadConfig({ DATABASE_URL: url, TEMPORAL_ADDRESS: '127.0.0.1:1' });
const logger = createLogger({ name: 'bench', level: 'warn' });
const pool = createPool({ url, size: 4, name: 'api' });
const registry = createRegistry('bench');
// The key that bench/capture/load sends.
await pool.query(
  `with organization as (
     insert into organizations (id, name, slug)
     values ('00000000-0000-7000-8000-000000000001', 'bench', 'bench') on conflict do nothing returning id)
   insert into projects (uuid, organization_id, name, api_token)
   select id, id, 'bench', 'phc_bench' from organization`,
);
const app = await buildApp({
  config,
  pool,
  ingest: createIngest({ pool: createPool({ url, size: 2, name: 'ingest' }), registry, logger }),
  schedules: createSchedules(config, logger),
  logger,
  registry,
  isPrepared: () => true,
  isDraining: () => false,
});
await app.listen({ host: host as string, port: Number(port) });
process.once('SIGTERM', () => process.exit(0));
