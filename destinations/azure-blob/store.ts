import { randomUUID } from 'node:crypto';
import type { Readable } from 'node:stream';
import type { BlobDownloadResponseParsed, ContainerClient } from '@azure/storage-blob';
import { digestOf, smallContent } from '../answers.ts';
import type { FileStore, StoreWork, Surroundings } from '../destination.ts';
import { requestLimit } from '../limits.ts';
import { PartBuffers } from '../parts.ts';
import type { AzureBlobConfig } from './config.ts';
import { conditionOf, connectAzure, isAbsent, isOutdated, place } from './connection.ts';
import { AzureUpload, MARK, md5Of, propertiesOf } from './upload.ts';

/** The content of a blob, from its beginning. Undefined if there is none. */
async function contentOf(
  container: ContainerClient,
  key: string,
  abortSignal: AbortSignal,
): Promise<(BlobDownloadResponseParsed & { body: Readable; length: number }) | undefined> {
  try {
    const answer = await container.getBlobClient(key).download(0, undefined, {
      abortSignal,
      maxRetryRequests: 0,
    });
    const { readableStreamBody: body, contentLength: length = 0 } = answer;
    return { ...answer, body: body as Readable, length };
  } catch (error) {
    if (isAbsent(error)) return undefined;
    throw error;
  }
}

export function azureStore(config: AzureBlobConfig, surroundings: Surroundings, work?: StoreWork): FileStore {
  const connection = connectAzure(config, surroundings, work);
  const { limits } = connection;
  const buffers = new PartBuffers();
  let opened = 0;

  /** Deletes the blob that is there, if it has this version. Otherwise resolves with false. */
  const remove = (key: string, seen?: string, signal?: AbortSignal) =>
    connection.send(
      async (container, abortSignal) => {
        try {
          const conditions = seen === undefined ? {} : { ifMatch: seen };
          await container.getBlobClient(key).delete({ abortSignal, conditions });
          return true;
        } catch (error) {
          if (isAbsent(error) || isOutdated(error, seen)) return false;
          throw error;
        }
      },
      { key, doing: 'Delete Blob', signal },
    );

  return {
    describe: (key) => place(config, key),

    // Nobody can remove blocks that nobody joined. Azure does, after a week.
    sweep: async () => undefined,

    async open(key, labels, signal) {
      opened += 1;
      const metadata = Object.fromEntries(
        Object.entries(labels).map(([name, value]) => [name.replaceAll('-', '_'), value]),
      );
      return new AzureUpload({
        ...{ connection, buffers, key, signal, mayWait: opened === 1 },
        metadata: { ...metadata, [MARK]: randomUUID() },
      });
    },

    async get(key, signal) {
      return connection.send(
        async (container, abortSignal, extend) => {
          const found = await contentOf(container, key, abortSignal);
          if (!found) return undefined;
          const { body, length, etag: version = '' } = found;
          const bytes = await smallContent(body, length, (most) => extend(requestLimit(limits, most)));
          return { bytes, version };
        },
        { key, doing: 'Get Blob', signal, cut: signal },
      );
    },

    async put(key, bytes, seen) {
      return connection.send(
        async (container, abortSignal) => {
          try {
            await container.getBlockBlobClient(key).upload(bytes, bytes.length, {
              ...{
                abortSignal,
                conditions: conditionOf(seen?.version),
                transactionalContentMD5: md5Of(bytes),
              },
              blobHTTPHeaders: { blobContentType: 'application/json' },
            });
            return true;
          } catch (error) {
            if (isOutdated(error, seen?.version)) return false;
            throw error;
          }
        },
        { key, doing: 'Put Blob', limit: requestLimit(limits, bytes.length) },
      );
    },

    async remove(key) {
      await remove(key);
    },

    async markOf(key, signal) {
      const found = await propertiesOf(connection, key, signal);
      return found && (found.metadata?.[MARK] ?? null);
    },

    async removeMarked(key, mark, signal) {
      const found = await propertiesOf(connection, key, signal);
      return found?.metadata?.[MARK] === mark && remove(key, found.etag, signal);
    },

    async digest(key, signal) {
      return connection.send(
        async (container, abortSignal, extend) => {
          const found = await contentOf(container, key, abortSignal);
          if (!found) return undefined;
          extend(requestLimit(limits, found.length));
          return digestOf(found.body, found.length, place(config, key), signal);
        },
        { key, doing: 'Get Blob', signal, cut: signal },
      );
    },

    close() {
      buffers.clear();
      connection.destroy();
    },
  };
}
