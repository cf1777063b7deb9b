import { expect, test } from '@jest/globals';
import { createSchedules } from '../../schedules/schedules.ts';
import { createLogger } from '../../telemetry/logger.ts';
import { reservePort } from '../support/ports.ts';

test('a call that waits for its next try ends when the client is closed', async () => {
  const schedules = createSchedules(
    {
      TEMPORAL_ADDRESS: `127.0.0.1:${await reservePort()}`,
      TEMPORAL_NAMESPACE: 'default',
      TEMPORAL_API_KEY: undefined,
      TEMPORAL_TLS: false,
      TEMPORAL_TLS_CERT: undefined,
      TEMPORAL_TLS_KEY: undefined,
      TEMPORAL_TLS_CA: undefined,
      TEMPORAL_UI_URL: undefined,
      SLUICE_TASK_QUEUE: 'sluice',
      SLUICE_TEMPORAL_UI_PORT: 0,
    },
    createLogger({ name: 'test', level: 'silent' }),
  );
  const calls = Array.from({ length: 20 }, (_, n) => schedules.exports.remove(`export-${n}`));
  const ends = Promise.allSettled(calls);
  await schedules.close();
  expect((await ends).map((end) => end.status)).toEqual(calls.map(() => 'rejected'));
});
