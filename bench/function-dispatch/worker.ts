// The part of a worker that runs functions, as a process of its own.
import { loadConfig } from '../../config.ts';
import { createLogger } from '../../telemetry/logger.ts';
import { startFunctions } from '../../worker/function-tools.ts';

const config = loadConfig(process.env);
const runtime = startFunctions({
  ...{ config, keyring: undefined, address: config.DATABASE_URL as string },
  logger: createLogger({ name: 'worker', level: 'warn' }),
});
process.once('SIGTERM', () => void runtime.close().then(() => process.exit(0)));
