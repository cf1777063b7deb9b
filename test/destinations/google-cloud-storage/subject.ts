import { generateKeyPairSync } from 'node:crypto';
import { keyFileWith } from '../../support/google-front.ts';
import { googleStorageForFile } from '../../support/google-storage.ts';
import { CANARY, type Subject, uuidsIn } from '../subject.ts';

export function subject(): Subject {
  const google = googleStorageForFile();
  return {
    isAtomic: true,
    async config() {
      return {
        bucket_name: await google.createBucket(),
        prefix: '{table}/',
        service_account_key: JSON.stringify(google.keyFile),
        endpoint_url: google.endpoint,
        max_file_size_mb: 100,
      };
    },
    wrongSecret(config) {
      const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
      const pem = privateKey.export({ type: 'pkcs8', format: 'pem' });
      const key = keyFileWith(google.endpoint, `${pem}${CANARY}\n`);
      return { ...config, service_account_key: JSON.stringify(key) };
    },
    nobodyListens: (config, port) => ({ ...config, endpoint_url: `http://127.0.0.1:${port}` }),
    async visible(config) {
      const uuids: string[] = [];
      for (const key of await google.objectsIn(config.bucket_name)) {
        if (key.endsWith('.json')) continue;
        uuids.push(...uuidsIn((await google.read(config.bucket_name, key)).toString('utf8')));
      }
      return uuids;
    },
    files: {
      overwrite: (config, key, text) => google.write(config.bucket_name, key, text),
      remove: (config, key) => google.remove(config.bucket_name, key),
    },
  };
}
