// Starts a Temporal and then only waits, so that a test can kill the process that started it.
import { startTemporal } from '../../../stack/temporal.ts';

const [dataDir, cacheDir] = process.argv.slice(2) as [string, string];
const { pid, address } = await startTemporal({ dataDir, cacheDir, port: 0, uiPort: 0 });
process.send?.({ pid, address });
setInterval(() => undefined, 1_000);
