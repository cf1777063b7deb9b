import { expect, test } from '@jest/globals';
import { DestinationError } from '../../destinations/errors.ts';
import { type Patience, patiently } from '../../destinations/retry.ts';

const AT_ONCE: Patience = { attempts: 5, delay: () => 0 };

/** Does work whose tries take so many seconds each, and fail, until one has no time. Returns how often it was tried. */
async function tries(seconds: readonly number[]): Promise<{ tried: number; done: boolean }> {
  let now = 0;
  let tried = 0;
  const work = async () => {
    const takes = seconds[tried];
    tried += 1;
    if (takes === undefined) return;
    now += takes * 1_000;
    throw new DestinationError('interrupted', 'The server closed the connection.');
  };
  const done = await patiently(work, { hasFlowed: () => true, patience: AT_ONCE, clock: () => now }).then(
    () => true,
    (error) => {
      if (!(error instanceof DestinationError)) throw error;
      return false;
    },
  );
  return { tried, done };
}

test.each<[string, number[], number, boolean]>([
  ['a part that breaks off after minutes is sent again', [300], 2, true],
  ['short faults after a long transfer are waited for', [300, 1, 5], 4, true],
  ['half a minute after the first failure it ends', [0, 31, 0], 2, false],
  ['a second try that takes long is the last one', [300, 300], 2, false],
  ['the number of tries has a bound', [0, 0, 0, 0, 0], 5, false],
])('%s', async (_, seconds, tried, done) => {
  expect(await tries(seconds)).toEqual({ tried, done });
});
