import type { FilesDestination } from '../destination.ts';
import { fileOptions, ONCE_BY_MANIFEST } from '../file-options.ts';
import {
  type AzureBlobConfig,
  azureAddress,
  azureBlobFields,
  azurePlace,
  expandConnectionString,
} from './config.ts';

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
  // The official client takes longer to load than the rest of a process, so only what speaks to Azure loads it.
  store: async (...given) => (await import('./store.ts')).azureStore(...given),
  steps: [
    {
      name: 'Check Azure container exists',
      description:
        'Ensure the account and the container exist and that we have permission to read blobs in it.',
      run: async (...given) => (await import('./steps.ts')).checkContainer(...given),
    },
    {
      name: 'Write to Azure container',
      description: 'Ensure we can write below the configured prefix, by a blob that is deleted again.',
      run: async (...given) => (await import('./steps.ts')).checkWriting(...given),
    },
  ],
};
