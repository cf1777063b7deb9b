import type { IncomingMessage, ServerResponse } from 'node:http';
import type { FastifyRequest } from 'fastify';
import type { ApiError } from '../errors.ts';
import type { Handle } from './exchange.ts';

/** Milliseconds without a byte after which a client has stopped sending. */
const STOPPED_AFTER = 5_000;
/** What a refused client still sends is thrown away up to here. */
const MOST_DISCARDED = 64 * 1024 * 1024;
const JSON_TYPE = 'application/json; charset=utf-8';

export interface Answer {
  status: number;
  body: string;
  /** Further headers: name, value, name, value. Without them, a body is JSON. */
  headers?: readonly string[];
  /** What else than the origin the answer depends on. */
  vary?: string;
  /** Whether the client still sends what is answered. */
  isEarly?: boolean;
}

export function send(request: FastifyRequest, response: ServerResponse, answer: Answer): void {
  const { status, body, headers, vary } = answer;
  const { origin } = request.headers;
  const own = ['x-request-id', request.id, 'vary', vary === undefined ? 'Origin' : `Origin, ${vary}`];
  // 204 has no length.
  if (status !== 204) own.push('content-length', String(Buffer.byteLength(body)));
  if (headers) own.push(...headers);
  else if (body !== '') own.push('content-type', JSON_TYPE);
  // Browsers of any site send here, older clients with cookies: they are told their own origin.
  if (origin !== undefined) {
    own.push('access-control-allow-origin', origin, 'access-control-allow-credentials', 'true');
    own.push('access-control-expose-headers', 'x-request-id, retry-after');
  }
  response.writeHead(status, own);
  if (answer.isEarly && body !== '') endAfterRequest(request.raw, response, body);
  else response.end(body);
}

/** Answers with what the error says. */
export function refuse(request: FastifyRequest, response: ServerResponse, error: ApiError): number {
  const { status, body, headers } = error;
  if (response.headersSent) {
    response.destroy();
    return status;
  }
  const own = [
    'content-type',
    JSON_TYPE,
    'x-content-type-options',
    'nosniff',
    ...Object.entries(headers).flat(),
  ];
  const { raw } = request;
  const isEarly = !raw.complete && !raw.readableEnded && !raw.destroyed && headers.connection === undefined;
  // Whatever else the client may have sent until then is of no use.
  if (isEarly) own.push('connection', 'close');
  send(request, response, { status, body: JSON.stringify(body), headers: own, isEarly });
  return status;
}

/**
 * Ends an answer to a request that is still being sent, when the client has stopped sending. Closed before, the
 * connection would break under it, and many clients would never see the answer: they would send the same again, and
 * not learn that they are to send less.
 */
function endAfterRequest(request: IncomingMessage, response: ServerResponse, body: string): void {
  response.write(body);
  let discarded = 0;
  const stopped = setTimeout(end, STOPPED_AFTER).unref();
  function end(): void {
    clearTimeout(stopped);
    response.end();
  }
  request.on('data', (chunk: Buffer) => {
    stopped.refresh();
    discarded += chunk.length;
    if (discarded > MOST_DISCARDED) end();
  });
  request.on('error', end);
  request.once('end', end);
  request.once('close', end);
  request.resume();
}

/** The answer to a browser that asks before it sends. */
export const preflight: Handle = ({ request: { headers } }) => ({
  status: 200,
  body: '',
  vary: 'Access-Control-Request-Headers',
  headers: [
    'access-control-allow-methods',
    'GET, HEAD, POST, OPTIONS',
    'access-control-max-age',
    '86400',
    // Whatever tracing tools add.
    ...(headers['access-control-request-headers'] === undefined
      ? []
      : ['access-control-allow-headers', headers['access-control-request-headers'] as string]),
  ],
});
