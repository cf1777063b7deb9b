import { CreateBucketCommand, S3Client } from '@aws-sdk/client-s3';
import { afterAll, beforeAll } from '@jest/globals';
import { BUILD_MILLISECONDS } from './go-built.ts';
import { reservePort } from './ports.ts';
import { CREDENTIALS, type RunningVersitygw, startVersitygw } from './versitygw-server.ts';

export interface S3Server {
  endpoint: string;
  accessKeyId: string;
  secretAccessKey: string;
  /** A client of the test's own, to see what is there. */
  client: S3Client;
  createBucket(): Promise<string>;
}

let buckets = 0;

/** A real S3 server for the tests of one file, with a directory of its own; both are gone afterwards. */
export function s3ForFile(): S3Server {
  const server = {
    ...CREDENTIALS,
    async createBucket() {
      buckets += 1;
      const name = `bucket-${process.pid}-${buckets}`;
      await server.client.send(new CreateBucketCommand({ Bucket: name }));
      return name;
    },
  } as S3Server;
  let running: RunningVersitygw | undefined;
  beforeAll(async () => {
    running = await startVersitygw(await reservePort());
    server.endpoint = running.endpoint;
    server.client = new S3Client({
      endpoint: server.endpoint,
      region: 'us-east-1',
      forcePathStyle: true,
      credentials: CREDENTIALS,
    });
  }, BUILD_MILLISECONDS);
  afterAll(async () => {
    server.client?.destroy();
    await running?.stop();
  });
  return server;
}
