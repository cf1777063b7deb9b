import http from 'node:http';
import https from 'node:https';
import type { HttpOperationResponse, IHttpClient, WebResource } from '@azure/storage-blob';
import { NoAnswerError, secondsText } from '../../egress/no-answer.ts';
import type { AgentPair } from '../../egress/sockets.ts';
import { bounded } from '../answers.ts';

/** A server sends a request somewhere else. It would take its signature along. */
export class RedirectedError extends Error {
  override name = 'RedirectedError';
  readonly status: number;
  constructor(status: number) {
    super(`the server redirects (${status})`);
    this.status = status;
  }
}

async function textOf(answer: http.IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of bounded(answer)) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString('utf8');
}

function headersOf(request: WebResource, answer: http.IncomingMessage): HttpOperationResponse['headers'] {
  const headers = request.headers.clone();
  for (const name of headers.headerNames()) headers.remove(name);
  for (const [name, value] of Object.entries(answer.headers))
    if (value !== undefined) headers.set(name, Array.isArray(value) ? value.join(', ') : value);
  return headers;
}

/**
 * Takes the requests of the Azure client to the guarded agents, instead of a client that would listen to proxy variables
 * of the machine and follow redirects. `idle` is how long a connection may be silent, in milliseconds; 0: without limit.
 */
export const guardedHttpClient = ({ httpAgent, httpsAgent }: AgentPair, idle: number): IHttpClient => ({
  async sendRequest(request) {
    const url = new URL(request.url);
    const isSecure = url.protocol === 'https:';
    const { promise, resolve, reject } = Promise.withResolvers<http.IncomingMessage>();
    const call = (isSecure ? https : http).request(
      url,
      {
        method: request.method,
        headers: request.headers.toJson({ preserveCase: true }),
        agent: isSecure ? httpsAgent : httpAgent,
        ...(request.abortSignal ? { signal: request.abortSignal as AbortSignal } : {}),
      },
      resolve,
    );
    let answer: http.IncomingMessage | undefined;
    call.on('error', reject);
    call.setTimeout(idle, () => {
      const silence = new NoAnswerError(`the server was silent for ${secondsText(idle)}`);
      answer?.destroy(silence);
      call.destroy(silence);
    });
    call.end(request.body ?? undefined);
    answer = await promise;
    const status = answer.statusCode ?? 0;
    if (status >= 300 && status < 400) {
      answer.destroy();
      throw new RedirectedError(status);
    }
    const headers = headersOf(request, answer);
    if (request.streamResponseStatusCodes?.has(status))
      return { request, status, headers, readableStreamBody: answer };
    return { request, status, headers, bodyAsText: await textOf(answer) };
  },
});
