import { afterAll, jest } from '@jest/globals';
import { allocated } from './allocated.ts';

// On a machine that others use too, a test can run out of time through no fault of its own.
jest.retryTimes(Number(process.env.TEST_RETRIES ?? 0), { logErrorsBeforeRetry: true });

afterAll(async () => {
  if (allocated.length === 0) return;
  const { removeSchedules } = await import('./temporal.ts');
  await Promise.all(allocated.map(removeSchedules));
});
