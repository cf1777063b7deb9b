import type { Readable } from 'node:stream';
import type { S3Client } from '@aws-sdk/client-s3';
import { bounded } from '../answers.ts';

interface Answer {
  statusCode: number;
  body?: Readable;
}

/**
 * Bounds what the client collects in memory: whatever a server answers, except the content of an object, which its reader
 * takes piece by piece.
 */
export function boundAnswers(client: S3Client): void {
  client.middlewareStack.add(
    (next, { commandName }) =>
      async (request) => {
        const result = await next(request);
        const answer = result.response as Answer;
        const isContent = commandName === 'GetObjectCommand' && answer.statusCode < 300;
        if (answer.body && !isContent) answer.body = bounded(answer.body);
        return result;
      },
    // Next to the connection, before anything is read.
    { step: 'deserialize', priority: 'low', name: 'boundAnswers' },
  );
}
