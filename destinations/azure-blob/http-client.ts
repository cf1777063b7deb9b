import type http from 'node:http';
import type { HttpOperationResponse, IHttpClient, WebResource } from '@azure/storage-blob';
import type { AgentPair } from '../../egress/sockets.ts';
import { answerText, guardedRequest } from '../guarded-request.ts';

function headersOf(request: WebResource, answer: http.IncomingMessage): HttpOperationResponse['headers'] {
  const headers = request.headers.clone();
  for (const name of headers.headerNames()) headers.remove(name);
  for (const [name, value] of Object.entries(answer.headers))
    if (value !== undefined) headers.set(name, Array.isArray(value) ? value.join(', ') : value);
  return headers;
}

/**
 * Takes the requests of the Azure client to the guarded agents. `idle` is how long a connection may be silent, in
 * milliseconds; 0: without limit.
 */
export const guardedHttpClient = (agents: AgentPair, idle: number): IHttpClient => ({
  async sendRequest(request) {
    const answer = await guardedRequest(agents, new URL(request.url), {
      method: request.method,
      headers: request.headers.toJson({ preserveCase: true }),
      body: request.body,
      signal: request.abortSignal as AbortSignal | undefined,
      idle,
    });
    const status = answer.statusCode ?? 0;
    const headers = headersOf(request, answer);
    if (request.streamResponseStatusCodes?.has(status))
      return { request, status, headers, readableStreamBody: answer };
    return { request, status, headers, bodyAsText: await answerText(answer) };
  },
});
