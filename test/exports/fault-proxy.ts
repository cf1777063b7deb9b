import { once } from 'node:events';
import http, { type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { GetObjectCommand, ListMultipartUploadsCommand, ListObjectsV2Command } from '@aws-sdk/client-s3';
import { afterAll, afterEach, beforeAll } from '@jest/globals';
import { type S3Server, s3ForFile } from '../support/versitygw.ts';

/** What stands between the worker and the real server: passes on, or does harm. */
export type Harm = (request: IncomingMessage, response: ServerResponse, forward: () => void) => void;

export interface FaultyS3 extends FaultProxy {
  server: S3Server;
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

export const refuse = (response: ServerResponse, status: number, code: string) =>
  response
    .writeHead(status, { 'content-type': 'application/xml' })
    .end(`<?xml version="1.0"?><Error><Code>${code}</Code><Message>said the server</Message></Error>`);

export interface FaultProxy {
  harm: Harm | undefined;
  /** Where it listens. */
  readonly url: string;
}

/** Something in front of a server that speaks HTTP; passes everything on while no harm is set. */
export function faultProxyForFile(behind: () => string): FaultProxy {
  const server = http.createServer((request, response) => {
    const forward = () => {
      const onward = http.request(
        behind() + request.url,
        { method: request.method ?? 'GET', headers: request.headers },
        (answer) => {
          response.writeHead(answer.statusCode ?? 500, answer.headers);
          answer.pipe(response);
        },
      );
      onward.on('error', () => response.destroy());
      request.pipe(onward);
    };
    if (proxy.harm) proxy.harm(request, response, forward);
    else forward();
  });
  const proxy: FaultProxy = {
    harm: undefined,
    get url() {
      return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    },
  };
  beforeAll(async () => {
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
  });
  afterEach(() => {
    proxy.harm = undefined;
  });
  afterAll(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  return proxy;
}

/** The real S3 server with something in front of it. */
export function faultyS3ForFile(): FaultyS3 {
  const server = s3ForFile();
  const faulty = faultProxyForFile(() => server.endpoint) as FaultyS3;
  faulty.server = server;
  faulty.bucket = async (prefix = 'lake') => {
    const Bucket = await server.createBucket();
    return {
      config: {
        bucket_name: Bucket,
        region: 'us-east-1',
        prefix,
        endpoint_url: faulty.url,
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
