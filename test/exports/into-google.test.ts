import { expect, test } from '@jest/globals';
import { googleStorageForFile } from '../support/google-storage.ts';
import { exportWorldForFile, fillHour, hourly, uuidsOf } from './support.ts';

const google = googleStorageForFile();
const world = exportWorldForFile();

test('runs write Parquet and compressed lines into a bucket of Google, and a second run leaves one copy', async () => {
  const uuids = (await fillHour(world.pool, 0, 300)).sort();
  const { accessKey, secret } = google.hmac;
  for (const [file_format, credentials] of [
    ['JSONLines', { service_account_key: JSON.stringify(google.keyFile) }],
    ['Parquet', { hmac_access_key: accessKey, hmac_secret: secret }],
  ] as const) {
    const bucket_name = await google.createBucket();
    const row = await world.create('GoogleCloudStorage', {
      ...{ bucket_name, prefix: '{table}', file_format, compression: 'zstd' },
      ...{ ...credentials, endpoint_url: google.endpoint },
    });
    for (let time = 0; time < 2; time += 1)
      expect((await world.run(row, hourly(0))).result).toMatchObject({ status: 'Completed', records: 300 });
    const names = await google.objectsIn(bucket_name);
    expect(names).toHaveLength(2);
    if (file_format === 'Parquet') continue;
    const name = names.find((one) => !one.endsWith('.json')) as string;
    expect(uuidsOf(await google.read(bucket_name, name), name).sort()).toEqual(uuids);
  }
});
