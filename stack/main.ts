// `npm start`: a real Postgres, a real Temporal, the API and the worker, in one command.
import { ConfigError, loadConfig } from '../config.ts';
import { MigrationError } from '../db/migrate.ts';
import { type FileLock, lockInstance } from './file-lock.ts';
import { requireWritable } from './preflight.ts';
import { StackProblem } from './problem.ts';
import { StackRunner } from './stack.ts';
import { readyText } from './terminal.ts';

/** A terminal and npm both send the signal of one Ctrl-C. Signals within this time count as one. */
const SAME_SIGNAL_MILLISECONDS = 700;

const report = (line: string) => console.log(line);
const stopping = new AbortController();
const hurry = new AbortController();
let exitCode = 0;
let signalledAt = 0;

// Writes fail once the terminal is closed (SIGHUP). The stop must go on in order nevertheless.
process.stdout.on('error', () => undefined);
process.stderr.on('error', () => undefined);

function onSignal(): void {
  const now = Date.now();
  if (!stopping.signal.aborted) {
    signalledAt = now;
    report('\nStopping … (press Ctrl-C again to stop at once)');
    stopping.abort(new Error('stopped'));
  } else if (now - signalledAt > SAME_SIGNAL_MILLISECONDS && !hurry.signal.aborted) {
    report('Stopping at once. Committed data is safe.');
    hurry.abort();
  }
}
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, onSignal);

/** Prints why Sluice cannot go on, and stops it. */
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
    // The start gives up on its own soon. Until then the runner does not know all parts that it has to stop.
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
