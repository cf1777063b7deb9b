import type { Surroundings } from '../destination.ts';
import { DestinationError } from '../errors.ts';
import { probeKey } from '../object-keys.ts';
import { closing } from '../requests.ts';
import type { AzureBlobConfig } from './config.ts';
import { connectAzure } from './connection.ts';
import { propertiesOf } from './upload.ts';

/** Answers what is wrong with the container, or nothing. */
export const checkContainer = (config: AzureBlobConfig, surroundings: Surroundings, signal?: AbortSignal) =>
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
      if (code === 'denied') return `We couldn't access container ${name}. Check the provided credentials`;
      throw error;
    }
  });

/** Writes an empty blob and deletes it. Answers why it cannot, or nothing. */
export const checkWriting = (config: AzureBlobConfig, surroundings: Surroundings, signal?: AbortSignal) =>
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
  });
