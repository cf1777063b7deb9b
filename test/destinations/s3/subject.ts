import {
  DeleteObjectCommand,
  GetObjectCommand,
  ListMultipartUploadsCommand,
  ListObjectsV2Command,
  PutObjectCommand,
} from '@aws-sdk/client-s3';
import { expect } from '@jest/globals';
import { s3ForFile } from '../../support/versitygw.ts';
import { CANARY, type Subject, uuidsIn } from '../subject.ts';

export function subject(): Subject {
  const s3 = s3ForFile();
  return {
    isAtomic: true,
    async config() {
      return {
        bucket_name: await s3.createBucket(),
        region: 'us-east-1',
        prefix: '{table}/',
        endpoint_url: s3.endpoint,
        aws_access_key_id: s3.accessKeyId,
        aws_secret_access_key: s3.secretAccessKey,
        max_file_size_mb: 100,
      };
    },
    wrongSecret: (config) => ({ ...config, aws_secret_access_key: CANARY }),
    nobodyListens: (config, port) => ({ ...config, endpoint_url: `http://127.0.0.1:${port}` }),
    async visible(config) {
      const Bucket = config.bucket_name as string;
      const { Contents } = await s3.client.send(new ListObjectsV2Command({ Bucket }));
      const uuids: string[] = [];
      for (const { Key = '' } of Contents ?? []) {
        if (Key.endsWith('.json')) continue;
        const { Body } = await s3.client.send(new GetObjectCommand({ Bucket, Key }));
        uuids.push(...uuidsIn((await Body?.transformToString()) ?? ''));
      }
      const open = await s3.client.send(new ListMultipartUploadsCommand({ Bucket }));
      expect(open.Uploads ?? []).toEqual([]);
      return uuids;
    },
    files: {
      async overwrite(config, Key, text) {
        const Bucket = config.bucket_name as string;
        await s3.client.send(new PutObjectCommand({ Bucket, Key, Body: Buffer.from(text) }));
      },
      async remove(config, Key) {
        await s3.client.send(new DeleteObjectCommand({ Bucket: config.bucket_name as string, Key }));
      },
    },
  };
}
