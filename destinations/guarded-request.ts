import http from 'node:http';
import https from 'node:https';
import { NoAnswerError, secondsText } from '../egress/no-answer.ts';
import type { AgentPair } from '../egress/sockets.ts';
import { bounded } from './answers.ts';

/** A server sends a request somewhere else. It would take its credentials along. */
export class RedirectedError extends Error {
  override name = 'RedirectedError';
  readonly status: number;
  constructor(status: number) {
    super(`the server redirects (${status})`);
    this.status = status;
  }
}

interface GuardedRequest {
  method: string;
  headers: http.OutgoingHttpHeaders;
  body?: unknown;
  signal?: AbortSignal | undefined;
  /** How long the connection may be silent, in milliseconds. 0: without limit. */
  idle: number;
}

/** Whether an answer sends the request elsewhere. 308 without an address is how Google asks for more of a file. */
const isRedirect = ({ statusCode = 0, headers }: http.IncomingMessage): boolean =>
  statusCode >= 300 && statusCode < 400 && !(statusCode === 308 && headers.location === undefined);

/**
 * Makes one request to a store by the guarded agents, instead of a client that would listen to proxy variables of the
 * machine and follow redirects. Resolves with the answer, whose body is still to be read.
 */
export async function guardedRequest(
  { httpAgent, httpsAgent }: AgentPair,
  url: URL,
  { method, headers, body, signal, idle }: GuardedRequest,
): Promise<http.IncomingMessage> {
  const isSecure = url.protocol === 'https:';
  const { promise, resolve, reject } = Promise.withResolvers<http.IncomingMessage>();
  const call = (isSecure ? https : http).request(
    url,
    {
      ...{ method, headers },
      agent: isSecure ? httpsAgent : httpAgent,
      ...(signal ? { signal } : {}),
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
  call.end(body ?? undefined);
  answer = await promise;
  if (isRedirect(answer)) {
    answer.destroy();
    throw new RedirectedError(answer.statusCode as number);
  }
  return answer;
}

/** Reads the answer of a store about its objects. A longer one than anybody reads fails. */
export async function answerText(answer: http.IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of bounded(answer)) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString('utf8');
}
