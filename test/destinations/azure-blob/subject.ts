import { azuriteForFile, blobsIn } from '../../support/azurite.ts';
import { CANARY, type Subject, uuidsIn } from '../subject.ts';

export function subject(): Subject {
  const azure = azuriteForFile();
  return {
    isAtomic: true,
    async config() {
      return {
        container_name: await azure.createContainer(),
        prefix: '{table}/',
        account_name: azure.account,
        account_key: azure.key,
        endpoint_url: azure.endpoint,
        max_file_size_mb: 100,
      };
    },
    wrongSecret: (config) => ({ ...config, account_key: CANARY }),
    nobodyListens: (config, port) => ({
      ...config,
      endpoint_url: `http://127.0.0.1:${port}/${azure.account}`,
    }),
    async visible(config) {
      const container = azure.container(config.container_name);
      const uuids: string[] = [];
      for (const name of await blobsIn(container)) {
        if (name.endsWith('.json')) continue;
        uuids.push(...uuidsIn((await container.getBlobClient(name).downloadToBuffer()).toString('utf8')));
      }
      return uuids;
    },
    files: {
      async overwrite(config, key, text) {
        const blob = azure.container(config.container_name).getBlockBlobClient(key);
        await blob.upload(text, Buffer.byteLength(text));
      },
      async remove(config, key) {
        await azure.container(config.container_name).deleteBlob(key);
      },
    },
  };
}
