import type { Asker } from '../../db/turns.ts';
import { type ModelCompiler, stoppable } from '../../models/index.ts';
import { refuse } from '../../refusals.ts';
import type { ExportCommandDependencies } from './dependencies.ts';

/** How long all texts of one request may be read once it is its turn, in milliseconds. */
const LONGEST = 20_000;
const RETRY_SECONDS = 10;

/**
 * Reads what a user wrote: projects take turns, one request has a limited time, and nothing more is read when nobody
 * waits for the result. Call it without a connection or a lock in hand.
 */
export function reads<T>(
  { compiler, compiling }: Pick<ExportCommandDependencies, 'compiler' | 'compiling'>,
  asker: Asker,
  work: (compiler: ModelCompiler) => Promise<T>,
): Promise<T> {
  return compiling.take(asker, async () => {
    const enough = AbortSignal.timeout(LONGEST);
    const signal = asker.signal ? AbortSignal.any([asker.signal, enough]) : enough;
    try {
      return await work(stoppable(compiler, signal));
    } catch (error) {
      if (error !== enough.reason) throw error;
      throw refuse.crowded(
        `Reading the filters and columns of this request takes more than ${LONGEST / 1000} seconds. Make them ` +
          'simpler.',
        RETRY_SECONDS,
      );
    }
  });
}
