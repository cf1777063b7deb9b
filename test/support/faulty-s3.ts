import { once } from 'node:events';
import http, { type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { GetObjectCommand, ListMultipartUploadsCommand, ListObjectsV2Command } from '@aws-sdk/client-s3';
import { afterAll, afterEach, beforeAll } from '@jest/globals';
import { type S3Server, s3ForFile } from './versitygw.ts';

/** What stands between the worker and the real server: passes on, or does harm. */
export type Harm = (request: IncomingMessage, response: ServerResponse, forward: () => void) => void;

export interface FaultyS3 {
  server: S3Server;
  /** Until the end of the test. */
  harm: Harm | undefined;
  /** What was asked during the test. */
  seen: { method: string; url: string; headers: http.IncomingHttpHeaders }[];
  /** Where the harm is. */
  endpoint: string;
  /** Configuration of a new bucket that is reached by way of the harm. */
  bucket(prefix?: string): Promise<S3Bucket>;
}

export interface S3Bucket {
  config: Record<string, unknown>;
  keys(): Promise<string[]>;
  openUploads(): Promise<number>;
  read(key: string): Promise<Buffer>;
}

export const isPart = (request: IncomingMessage) =>
  request.method === 'PUT' && /partNumber=/.test(request.url ?? '');
export const isComplete = (request: IncomingMessage) =>
  request.method === 'POST' && /[?&]uploadId=/.test(request.url ?? '');
export const isManifest = (request: IncomingMessage) =>
  request.method === 'PUT' && /_manifest\.json/.test(request.url ?? '');

export const refuse = (
  response: ServerResponse,
  status: number,
  code: string,
  headers: Record<string, string> = {},
) =>
  response
    .writeHead(status, { 'content-type': 'application/xml', ...headers })
    .end(`<?xml version="1.0"?><Error><Code>${code}</Code><Message>said the server</Message></Error>`);

/** The real S3 server with something in front of it. */
export function faultyS3ForFile(): FaultyS3 {
  const server = s3ForFile();
  const faulty = { server, seen: [], harm: undefined } as unknown as FaultyS3;
  const proxy = http.createServer((request, response) => {
    const { method = 'GET', url = '', headers } = request;
    faulty.seen.push({ method, url, headers });
    const forward = () => {
      const onward = http.request(server.endpoint + url, { method, headers }, (answer) => {
        response.writeHead(answer.statusCode ?? 500, answer.headers);
        answer.pipe(response);
      });
      onward.on('error', () => response.destroy());
      request.pipe(onward);
    };
    if (faulty.harm) faulty.harm(request, response, forward);
    else forward();
  });
  beforeAll(async () => {
    proxy.listen(0, '127.0.0.1');
    await once(proxy, 'listening');
    faulty.endpoint = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`;
  });
  afterEach(() => {
    faulty.harm = undefined;
    faulty.seen = [];
  });
  afterAll(async () => {
    proxy.closeAllConnections();
    await new Promise((resolve) => proxy.close(resolve));
  });
  faulty.bucket = async (prefix = 'lake') => {
    const Bucket = await server.createBucket();
    return {
      config: {
        bucket_name: Bucket,
        region: 'us-east-1',
        prefix,
        endpoint_url: faulty.endpoint,
        aws_access_key_id: server.accessKeyId,
        aws_secret_access_key: server.secretAccessKey,
      },
      async keys() {
        const { Contents = [] } = await server.client.send(new ListObjectsV2Command({ Bucket }));
        return Contents.map(({ Key }) => Key as string).sort();
      },
      async openUploads() {
        const { Uploads = [] } = await server.client.send(new ListMultipartUploadsCommand({ Bucket }));
        return Uploads.length;
      },
      async read(key) {
        const { Body } = await server.client.send(new GetObjectCommand({ Bucket, Key: key }));
        return Buffer.from((await Body?.transformToByteArray()) ?? []);
      },
    };
  };
  return faulty;
}
