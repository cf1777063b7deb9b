import type { FilesDestination } from '../destination.ts';
import { DestinationError } from '../errors.ts';
import { fileOptions, ONCE_BY_MANIFEST } from '../file-options.ts';
import { probeKey } from '../object-keys.ts';
import { closing } from '../requests.ts';
import { NONE } from './api.ts';
import { expandKeyFile, type GoogleConfig, googleAddress, googleFields, googlePlace } from './config.ts';
import { connectGoogle } from './connection.ts';
import { googleStore } from './store.ts';

/** Writes objects into a bucket of Google Cloud Storage. */
export const googleCloudStorage: FilesDestination<GoogleConfig> = {
  kind: 'files',
  types: ['GoogleCloudStorage'],
  fields: googleFields,
  expand: expandKeyFile,
  address: googleAddress,
  columns: 'files',
  takesQuery: true,
  takesOpenEnd: false,
  writesTo: googlePlace,
  docs: {
    once: ONCE_BY_MANIFEST,
    address: ['`endpoint_url`. Where tokens come from is a part of `service_account_key`'],
  },
  options: fileOptions,
  store: googleStore,
  steps: [
    {
      name: 'Check Google bucket exists',
      description:
        'Ensure the configured bucket exists and that we have the required permissions to access it.',
      run: (config, surroundings, signal) =>
        closing(connectGoogle(config, surroundings), async (connection) => {
          const name = JSON.stringify(config.bucket_name);
          try {
            await connection.send(({ ask }) => ask(connection.api.list()), {
              ...{ doing: 'storage.objects.list', signal, cut: signal },
            });
            return undefined;
          } catch (error) {
            if (!(error instanceof DestinationError)) throw error;
            if (error.code === 'missing')
              return `Bucket ${name} does not exist or we don't have permissions to use it`;
            if (error.code === 'denied')
              return `We couldn't access bucket ${name}. Check the provided credentials: ${error.message}`;
            throw error;
          }
        }),
    },
    {
      name: 'Write to Google bucket',
      description: 'Ensure we can write below the configured prefix, by an object that is deleted again.',
      run: (config, surroundings, signal) =>
        closing(connectGoogle(config, surroundings), async (connection) => {
          const { api } = connection;
          const key = probeKey(config.prefix);
          const object = { key, replaces: NONE, metadata: {}, contentType: 'text/plain' };
          try {
            await connection.send(({ ask }) => ask(api.put(object, Buffer.alloc(0))), {
              ...{ key, doing: 'storage.objects.create', signal, cut: signal },
            });
          } catch (error) {
            if (error instanceof DestinationError && !error.retryable)
              return `We couldn't write to the bucket: ${error.message}`;
            throw error;
          }
          try {
            await connection.send(({ ask }) => ask(api.remove(key)), {
              ...{ key, doing: 'storage.objects.delete' },
            });
          } catch (error) {
            if (!(error instanceof DestinationError) || error.code !== 'denied') throw error;
            return (
              `We can write to the bucket but not delete from it, so that ${JSON.stringify(key)} stays there. ` +
              'storage.objects.delete is needed to export an interval again'
            );
          }
          return undefined;
        }),
    },
  ],
};
