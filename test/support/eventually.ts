import { setTimeout as pause } from 'node:timers/promises';

/** Milliseconds that a test waits for what takes its time on a busy machine. */
export const PATIENCE = 300_000;
/** Mutations set it, because most of them keep something from coming about for good. */
const LONGEST = Number(process.env.TEST_PATIENCE ?? PATIENCE);

/** Asks again until the answer is neither undefined nor false; what others do in the background takes its time. */
export async function eventually<T>(ask: () => Promise<T | undefined | false>): Promise<T> {
  const end = Date.now() + LONGEST;
  for (;;) {
    const answer = await ask();
    if (answer !== undefined && answer !== false) return answer as T;
    if (Date.now() > end) throw new Error('what the test waits for did not come about');
    await pause(100);
  }
}
