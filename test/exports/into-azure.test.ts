import { expect, test } from '@jest/globals';
import { azuriteForFile, blobsIn } from '../support/azurite.ts';
import { exportWorldForFile, fillHour, hourly, uuidsOf } from './support.ts';

const azure = azuriteForFile();
const world = exportWorldForFile();

test('runs write Parquet and compressed lines into a container, and a second run leaves one copy', async () => {
  const uuids = (await fillHour(world.pool, 0, 300)).sort();
  for (const [file_format, compression] of [
    ['JSONLines', 'zstd'],
    ['Parquet', 'zstd'],
  ]) {
    const container_name = await azure.createContainer();
    const row = await world.create('AzureBlob', {
      ...{ container_name, prefix: '{table}', file_format, compression },
      ...{ account_name: azure.account, account_key: azure.key, endpoint_url: azure.endpoint },
    });
    for (let time = 0; time < 2; time += 1)
      expect((await world.run(row, hourly(0))).result).toMatchObject({ status: 'Completed', records: 300 });
    const container = azure.container(container_name);
    const names = await blobsIn(container);
    expect(names).toHaveLength(2);
    if (file_format === 'Parquet') continue;
    const name = names.find((one) => !one.endsWith('.json')) as string;
    expect(uuidsOf(await container.getBlobClient(name).downloadToBuffer(), name).sort()).toEqual(uuids);
  }
});
