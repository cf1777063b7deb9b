import { afterAll, beforeAll } from '@jest/globals';
import { BUILD_MILLISECONDS } from './go-built.ts';
import { type GoogleFront, HMAC_KEY, startGoogleFront } from './google-front.ts';
import { type RunningGoogleStorage, startGoogleStorage } from './google-storage-server.ts';
import { reservePort } from './ports.ts';

export interface GoogleServer {
  /** Where it asks for credentials. */
  endpoint: string;
  /** The key file of a service account. */
  keyFile: Record<string, string>;
  hmac: typeof HMAC_KEY;
  createBucket(): Promise<string>;
  /** What is there, as somebody else would see and change it. */
  objectsIn(bucket: unknown): Promise<string[]>;
  read(bucket: unknown, key: string): Promise<Buffer>;
  write(bucket: unknown, key: string, text: string): Promise<void>;
  remove(bucket: unknown, key: string): Promise<void>;
}

let buckets = 0;

/** A server for the tests of one file. It is gone afterwards. */
export function googleStorageForFile(): GoogleServer {
  let running: RunningGoogleStorage | undefined;
  let front: GoogleFront | undefined;
  const ask = async (path: string, options: RequestInit = {}) => {
    const answer = await fetch(`${running?.endpoint}${path}`, options);
    if (!answer.ok) throw new Error(`${path}: ${answer.status}`);
    return answer;
  };
  const at = (bucket: unknown, key: string) => `/storage/v1/b/${bucket}/o/${encodeURIComponent(key)}`;
  const server = {
    hmac: HMAC_KEY,
    async createBucket() {
      buckets += 1;
      const name = `bucket-${process.pid}-${buckets}`;
      await ask('/storage/v1/b', { method: 'POST', body: JSON.stringify({ name }) });
      return name;
    },
    async objectsIn(bucket) {
      const answer = await ask(`/storage/v1/b/${bucket}/o`);
      const { items = [] } = (await answer.json()) as { items?: { name: string }[] };
      return items.map(({ name }) => name).sort();
    },
    async read(bucket, key) {
      return Buffer.from(await (await ask(`${at(bucket, key)}?alt=media`)).arrayBuffer());
    },
    async write(bucket, key, text) {
      const path = `/upload/storage/v1/b/${bucket}/o?uploadType=media&name=${encodeURIComponent(key)}`;
      await ask(path, { method: 'POST', body: text });
    },
    async remove(bucket, key) {
      await ask(at(bucket, key), { method: 'DELETE' });
    },
  } as GoogleServer;
  beforeAll(async () => {
    running = await startGoogleStorage(await reservePort());
    front = await startGoogleFront(running.endpoint);
    server.endpoint = front.endpoint;
    server.keyFile = front.keyFile;
  }, BUILD_MILLISECONDS);
  afterAll(async () => {
    await front?.stop();
    await running?.stop();
  });
  return server;
}
