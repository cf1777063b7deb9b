// `npm start`: a real Postgres, a real Temporal, the API and the worker, in one command.
import { ConfigError, loadConfig } from '../config.ts';
import { MigrationError } from '../db/migrate.ts';
import { type FileLock, lockInstance } from './file-lock.ts';
import { requireWritable } from './preflight.ts';
import { StackProblem } from './problem.ts';
import { StackRunner } from './stack.ts';
import { readyText } from './terminal.ts';

/** npm passes the terminal's signal on although this process already had it from the terminal. */
const SAME_SIGNAL_MILLISECONDS = 700;

const report = (line: string) => console.log(line);
const stopping = new AbortController();
const hurry = new AbortController();
let exitCode = 0;
let signalledAt = 0;

// A terminal that is closed (SIGHUP) takes the output with it; stopping in order matters more than the words.
process.stdout.on('error', () => undefined);
process.stderr.on('error', () => undefined);

function onSignal(): void {
  const now = Date.now();
  if (!stopping.signal.aborted) {
    signalledAt = now;
    report('\nStopping … (ctrl-C again to hurry)');
    stopping.abort(new Error('stopped'));
  } else if (now - signalledAt > SAME_SIGNAL_MILLISECONDS && !hurry.signal.aborted) {
    report('Hurrying: what still runs is ended at once; nothing that was committed is lost.');
    hurry.abort();
  }
}
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, onSignal);

/** Shows why it does not go on, and begins to stop. */
function fail(error: unknown): void {
  const known =
    error instanceof StackProblem || error instanceof ConfigError || error instanceof MigrationError;
  console.error(known ? `\n${error.message}` : error);
  exitCode = 1;
  signalledAt = Date.now();
  stopping.abort(error);
}
process.on('uncaughtException', fail);
process.on('unhandledRejection', fail);

async function run(): Promise<void> {
  const began = Date.now();
  const config = loadConfig(process.env);
  let lock: FileLock | undefined;
  let stack: StackRunner | undefined;
  try {
    requireWritable(config.SLUICE_DATA_DIR, 'SLUICE_DATA_DIR');
    lock = lockInstance(config.SLUICE_DATA_DIR);
    stack = new StackRunner({ config, env: process.env, report, signal: stopping.signal, giveUp: fail });
    const starting = stack.start();
    const stopped = new Promise<undefined>((resolve) => {
      stopping.signal.addEventListener('abort', () => resolve(undefined), { once: true });
    });
    const started = await Promise.race([starting, stopped]);
    if (started && !stopping.signal.aborted) {
      report(readyText(started, ((Date.now() - began) / 1000).toFixed(1)));
      await stopped;
    }
    // A start that is under way gives up by itself soon; what it did start must be known before it is stopped.
    await Promise.race([starting.catch(() => undefined), patience()]);
  } catch (error) {
    if (!stopping.signal.aborted) fail(error);
  } finally {
    await stack?.stop(hurry.signal);
    lock?.release();
  }
}

function patience(): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, 2_000);
    hurry.signal.addEventListener('abort', () => resolve(), { once: true });
  });
}

await run().catch(fail);
if (exitCode === 0) report('Sluice has stopped.');
process.exit(exitCode);
