// Starts a Postgres and then only waits, so that a test can kill the process that started it.
import { startPostgres } from '../../../stack/postgres.ts';

const [dataDir, cacheDir] = process.argv.slice(2) as [string, string];
const { pid, url } = await startPostgres({ dataDir, cacheDir, port: 0 });
process.send?.({ pid, url });
setInterval(() => undefined, 1_000);
