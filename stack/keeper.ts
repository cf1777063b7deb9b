import { setTimeout as pause } from 'node:timers/promises';
import { type Report, StackProblem } from './problem.ts';
import type { Exit, Service, StopOptions } from './process.ts';

/** Milliseconds before each new start; the last one is repeated. */
const BACKOFF = [200, 1_000, 2_000, 5_000, 10_000];
/** After this many failures within the window, the keeper gives up. */
const FAILURE_LIMIT = 5;
const FAILURE_WINDOW = 60_000;

export interface KeptPart<S extends Service> {
  name: string;
  start(): Promise<S>;
  /** Where to read why it ended. */
  logFile: string;
}

export interface KeeperOptions {
  report: Report;
  /** Called once, when the part fails again and again. */
  giveUp: (problem: StackProblem) => void;
  backoff?: number[];
}

export interface Kept<S extends Service> {
  readonly name: string;
  /** What runs now; another object after a restart. */
  readonly current: S;
  stop(options?: StopOptions): Promise<void>;
}

function describeExit(exit: Exit): string {
  return exit.signal ? `by ${exit.signal}` : `with code ${exit.code}`;
}

/**
 * Starts a part and restarts it whenever it ends unexpectedly, after growing pauses. Gives up after several failures
 * in quick succession. If the very first start fails, the error goes to the caller.
 */
export async function keepRunning<S extends Service>(
  part: KeptPart<S>,
  options: KeeperOptions,
): Promise<Kept<S>> {
  const backoff = options.backoff ?? BACKOFF;
  let current = await part.start();
  const stopping = new AbortController();
  let failures: number[] = [];
  let reason = '';

  /** Counts a failure and waits before the next try; false when there is none. */
  const mayRetry = async (): Promise<boolean> => {
    const now = Date.now();
    failures = [...failures.filter((time) => now - time < FAILURE_WINDOW), now];
    if (failures.length >= FAILURE_LIMIT) {
      options.giveUp(
        new StackProblem(
          `${part.name} failed ${failures.length} times within a minute (last: ${reason}), so Sluice stops. See ${part.logFile} for the reason.`,
        ),
      );
      return false;
    }
    options.report(`${part.name} ${reason}; starting it again …`);
    const wait = backoff[Math.min(failures.length, backoff.length) - 1] as number;
    return pause(wait, true, { signal: stopping.signal }).catch(() => false);
  };

  const watch = async () => {
    for (;;) {
      const exit = await current.exited;
      if (stopping.signal.aborted) return;
      reason = `ended unexpectedly ${describeExit(exit)}`;
      for (;;) {
        if (!(await mayRetry())) return;
        try {
          current = await part.start();
          break;
        } catch (error) {
          if (stopping.signal.aborted) return;
          reason = `could not start: ${(error as Error).message}`;
        }
      }
      // The stop may have come while the new one was starting: it stops what it finds in `current`.
      if (stopping.signal.aborted) return;
      options.report(`${part.name} is running again.`);
    }
  };
  const watching = watch();

  return {
    name: part.name,
    get current() {
      return current;
    },
    async stop(how) {
      stopping.abort();
      const before = current;
      await before.stop(how);
      await watching;
      if (current !== before) await current.stop(how);
    },
  };
}
