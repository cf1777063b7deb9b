import { jest } from '@jest/globals';

// On a machine that others use too, a test can run out of time through no fault of its own.
jest.retryTimes(Number(process.env.TEST_RETRIES ?? 0), { logErrorsBeforeRetry: true });
