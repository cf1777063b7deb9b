import { type AddressInfo, createServer, type Socket } from 'node:net';
import { afterAll, beforeAll } from '@jest/globals';

/** A server that accepts connections and never answers. */
export interface SilentServer {
  /** An S3 destination at this server. The bucket tells its connections from others. */
  s3(bucket: string): Record<string, unknown>;
  /** The buckets that somebody waits for an answer about now, in the order of their requests. */
  asked(): string[];
  /** How often each bucket was asked for. */
  counts: Map<string, number>;
  /** Drops the connections of a bucket, or of all. */
  drop(bucket?: string): void;
}

export function silentServerForFile(): SilentServer {
  const open = new Map<Socket, string>();
  const counts = new Map<string, number>();
  const server = createServer((socket) => {
    socket.once('data', (bytes) => {
      const bucket = /^\S+ \/([^/?\s]+)/.exec(bytes.toString('latin1'))?.[1] ?? '';
      open.set(socket, bucket);
      counts.set(bucket, (counts.get(bucket) ?? 0) + 1);
    });
    socket.on('error', () => undefined);
    socket.on('close', () => open.delete(socket));
  });
  const silent: SilentServer = {
    s3: (bucket) => ({
      ...{ bucket_name: bucket, region: 'us-east-1', prefix: 'lake', use_virtual_style_addressing: false },
      endpoint_url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
      ...{ aws_access_key_id: 'id', aws_secret_access_key: 'secret' },
    }),
    asked: () => [...open.values()],
    counts,
    drop(bucket) {
      for (const [socket, of] of open) if (bucket === undefined || of === bucket) socket.destroy();
    },
  };
  afterAll(() => {
    silent.drop();
    return new Promise((resolve) => server.close(resolve));
  });
  beforeAll(() => new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve)));
  return silent;
}
