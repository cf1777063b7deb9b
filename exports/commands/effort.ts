import type { Asker } from '../../db/turns.ts';
import { type Parser, stoppable } from '../../hog/parser/index.ts';
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
  {
    parser,
    parsing,
    longestRead = LONGEST,
  }: Pick<ExportCommandDependencies, 'parser' | 'parsing' | 'longestRead'>,
  asker: Asker,
  work: (parser: Parser) => Promise<T>,
): Promise<T> {
  return parsing.take(asker, async () => {
    const enough = AbortSignal.timeout(longestRead);
    const signal = asker.signal ? AbortSignal.any([asker.signal, enough]) : enough;
    try {
      return await work(stoppable(parser, signal));
    } catch (error) {
      if (error !== enough.reason) throw error;
      throw refuse.crowded(
        `Reading the filters and columns of this request takes more than ${longestRead / 1000} seconds. Make them ` +
          'simpler.',
        RETRY_SECONDS,
      );
    }
  });
}
