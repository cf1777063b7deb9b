import type { IncomingMessage, ServerResponse } from 'node:http';
import { GetObjectCommand, ListMultipartUploadsCommand, ListObjectsV2Command } from '@aws-sdk/client-s3';
import { type FaultProxy, faultProxyForFile } from './fault-proxy.ts';
import { type S3Server, s3ForFile } from './versitygw.ts';

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
  const faulty = faultProxyForFile(() => server.endpoint) as FaultyS3;
  faulty.server = server;
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
