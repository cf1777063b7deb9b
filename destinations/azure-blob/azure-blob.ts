import type { FilesDestination } from '../destination.ts';
import { DestinationError } from '../errors.ts';
import { fileOptions, ONCE_BY_MANIFEST } from '../file-options.ts';
import { probeKey } from '../object-keys.ts';
import { closing } from '../requests.ts';
import {
  type AzureBlobConfig,
  azureAddress,
  azureBlobFields,
  azurePlace,
  expandConnectionString,
} from './config.ts';
import { connectAzure } from './connection.ts';
import { azureStore } from './store.ts';
import { propertiesOf } from './upload.ts';

/** Writes block blobs into a container of Azure Blob Storage. */
export const azureBlob: FilesDestination<AzureBlobConfig> = {
  kind: 'files',
  types: ['AzureBlob'],
  fields: azureBlobFields,
  expand: expandConnectionString,
  address: azureAddress,
  columns: 'files',
  takesQuery: true,
  takesOpenEnd: false,
  writesTo: azurePlace,
  docs: {
    once: ONCE_BY_MANIFEST,
    address: [
      '`account_name` and `endpoint_url`. A `connection_string` contains all of it, so it needs nothing more',
    ],
  },
  options: fileOptions,
  store: azureStore,
  steps: [
    {
      name: 'Check Azure container exists',
      description:
        'Ensure the account and the container exist and that we have permission to read blobs in it.',
      run: (config, surroundings, signal) =>
        closing(connectAzure(config, surroundings), async (connection) => {
          const name = JSON.stringify(config.container_name);
          try {
            // A signature may be for blobs only, so it asks for one that is not there.
            await propertiesOf(connection, probeKey(config.prefix), signal);
            return undefined;
          } catch (error) {
            const code = error instanceof DestinationError ? error.code : undefined;
            if (code === 'missing')
              return `Container ${name} does not exist or we don't have permissions to use it`;
            if (code === 'denied')
              return `We couldn't access container ${name}. Check the provided credentials`;
            throw error;
          }
        }),
    },
    {
      name: 'Write to Azure container',
      description: 'Ensure we can write below the configured prefix, by a blob that is deleted again.',
      run: (config, surroundings, signal) =>
        closing(connectAzure(config, surroundings), async (connection) => {
          const key = probeKey(config.prefix);
          try {
            await connection.send(
              (container, abortSignal) => container.getBlockBlobClient(key).upload('', 0, { abortSignal }),
              { key, doing: 'Put Blob', signal, cut: signal },
            );
          } catch (error) {
            if (error instanceof DestinationError && !error.retryable)
              return `We couldn't write to the container: ${error.message}`;
            throw error;
          }
          try {
            await connection.send(
              (container, abortSignal) => container.getBlobClient(key).delete({ abortSignal }),
              { key, doing: 'Delete Blob' },
            );
          } catch (error) {
            if (!(error instanceof DestinationError) || error.code !== 'denied') throw error;
            return (
              `We can write to the container but not delete from it, so that ${JSON.stringify(key)} stays there. ` +
              'The permission to delete is needed to remove files of an interval that is exported again with fewer files'
            );
          }
          return undefined;
        }),
    },
  ],
};
