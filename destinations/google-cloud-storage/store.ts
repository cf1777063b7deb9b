import type { IncomingMessage } from 'node:http';
import { digestOf, smallContent } from '../answers.ts';
import type { FileStore, StoreWork, Surroundings } from '../destination.ts';
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
          const bytes = await smallContent(body, length, (most) => extend(requestLimit(limits, most)));
          return { bytes, version };
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
          return digestOf(found.body, found.length, place(config, key), signal);
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
