import { createHash } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { readContent } from '../answers.ts';
import { type FileStore, MOST_SMALL_BYTES, type StoreWork, type Surroundings } from '../destination.ts';
import { DestinationError } from '../errors.ts';
import { requestLimit } from '../limits.ts';
import { PartBuffers } from '../parts.ts';
import { NONE } from './api.ts';
import type { GoogleConfig } from './config.ts';
import { type Asker, connectGoogle, isAbsent, isOutdated, place } from './connection.ts';
import { find, GoogleUpload, Waiting } from './upload.ts';

export function googleStore(config: GoogleConfig, surroundings: Surroundings, work?: StoreWork): FileStore {
  const connection = connectGoogle(config, surroundings, work);
  const { api, limits } = connection;
  const buffers = new PartBuffers();
  const waiting = new Waiting();
  let opened = 0;

  /** The content of an object, from its beginning. Undefined if there is none. */
  async function contentOf(
    { open }: Asker,
    key: string,
  ): Promise<{ body: IncomingMessage; length: number; version: string } | undefined> {
    try {
      const body = await open(api.content(key));
      const length = Number(body.headers['content-length'] ?? 0);
      return { body, length, version: String(body.headers['x-goog-generation'] ?? NONE) };
    } catch (error) {
      if (isAbsent(error)) return undefined;
      throw error;
    }
  }

  /** Deletes the object that is there, if it is this one. Otherwise resolves with false. */
  const remove = (key: string, seen?: string, signal?: AbortSignal) =>
    connection.send(
      async ({ ask }) => {
        try {
          await ask(api.remove(key, seen));
          return true;
        } catch (error) {
          if (isAbsent(error) || isOutdated(error, seen ?? NONE)) return false;
          throw error;
        }
      },
      { key, doing: 'storage.objects.delete', signal },
    );

  return {
    describe: (key) => place(config, key),

    // Nobody can list the sessions of uploads. Google forgets one that nobody ends after a week.
    sweep: async () => undefined,

    async open(key, labels, signal) {
      opened += 1;
      return new GoogleUpload({
        ...{ connection, buffers, waiting, key, labels, signal },
        mayWait: opened === 1,
      });
    },

    async get(key, signal) {
      return connection.send(
        async (asker, extend) => {
          const found = await contentOf(asker, key);
          if (!found) return undefined;
          const { body, length, version } = found;
          if (length > MOST_SMALL_BYTES) {
            body.destroy();
            return { bytes: Buffer.alloc(0), version };
          }
          extend(requestLimit(limits, length));
          return { bytes: (await readContent(body, MOST_SMALL_BYTES)) ?? Buffer.alloc(0), version };
        },
        { key, doing: 'storage.objects.get', signal, cut: signal },
      );
    },

    async put(key, bytes, seen) {
      const replaces = seen?.version ?? NONE;
      const object = { key, replaces, metadata: {}, contentType: 'application/json' };
      return connection.send(
        async ({ ask }) => {
          try {
            await ask(api.put(object, bytes));
            return true;
          } catch (error) {
            if (isOutdated(error, replaces)) return false;
            throw error;
          }
        },
        { key, doing: 'storage.objects.create', limit: requestLimit(limits, bytes.length) },
      );
    },

    async remove(key) {
      await remove(key);
    },

    async markOf(key, signal) {
      return (await find(connection, key, signal))?.mark;
    },

    async removeMarked(key, mark, signal) {
      const found = await find(connection, key, signal);
      return found?.mark === mark && remove(key, found.generation, signal);
    },

    async digest(key, signal) {
      return connection.send(
        async (asker, extend) => {
          const found = await contentOf(asker, key);
          if (!found) return undefined;
          extend(requestLimit(limits, found.length));
          const hash = createHash('sha256');
          let bytes = 0;
          for await (const chunk of found.body) {
            signal?.throwIfAborted();
            hash.update(chunk as Buffer);
            bytes += (chunk as Buffer).length;
          }
          if (bytes !== found.length)
            throw new DestinationError('interrupted', `${place(config, key)}: the answer was cut off`);
          return { bytes, sha256: hash.digest('hex') };
        },
        { key, doing: 'storage.objects.get', signal, cut: signal },
      );
    },

    close() {
      buffers.clear();
      connection.destroy();
    },
  };
}
