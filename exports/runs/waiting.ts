import type { RunControl } from '../../destinations/destination.ts';
import type { Attempt } from './attempt.ts';

/** An attempt that hears what it waits for. */
export interface WaitingAttempt extends Attempt, Required<Pick<RunControl, 'onWait'>> {
  onWait(what: string): () => void;
  /** Reports that the attempt is alive, although it waits. */
  stillWaits(): void;
  /** Tells no more. Resolves when what was told is written down. */
  quiet(): Promise<void>;
}

interface Telling {
  /** Is told what the attempt waits for when nothing has moved for a while, and null when something moves again. */
  say(waitsFor: string | null): Promise<void>;
  /** How long nothing moves before that, in milliseconds. */
  after?: number | undefined;
}

/** Longer than a connection takes that fails, so that only its failure is told. */
const AFTER = 11_000;

/**
 * Tells what an attempt waits for, while it waits. An attempt that moves rows waits for nothing, however many requests
 * are under way.
 */
export function tellWaits(attempt: Attempt, { say, after = AFTER }: Telling): WaitingAttempt {
  /** What is waited for, the longest wait first. */
  const waits = new Map<symbol, string>();
  let movedAt = performance.now();
  let told: string | null = null;
  let saying = Promise.resolve();
  let timer: NodeJS.Timeout | undefined;
  let isQuiet = false;

  function tell(waitsFor: string | null): void {
    if (told === waitsFor || isQuiet) return;
    told = waitsFor;
    saying = saying.then(() => say(waitsFor));
  }

  function schedule(): void {
    clearTimeout(timer);
    if (waits.size === 0 || isQuiet) return;
    timer = setTimeout(
      () => {
        const [longest = null] = waits.values();
        if (longest !== null) tell(longest);
      },
      Math.max(0, movedAt + after - performance.now()),
    );
  }

  function moved(): void {
    movedAt = performance.now();
    tell(null);
    schedule();
  }

  async function quiet(): Promise<void> {
    isQuiet = true;
    clearTimeout(timer);
    await saying;
  }

  return {
    ...attempt,
    onProgress(rows, bytes) {
      attempt.onProgress(rows, bytes);
      moved();
    },
    moved() {
      attempt.moved();
      moved();
    },
    stillWaits: attempt.moved,
    onWait(what) {
      const id = Symbol();
      waits.set(id, what);
      schedule();
      return () => {
        if (waits.delete(id)) schedule();
      };
    },
    quiet,
    async close() {
      await quiet();
      await attempt.close();
    },
  };
}
