import type { IncomingMessage, ServerResponse } from 'node:http';
import type { ApiError } from '../errors.ts';
import type { LaneRequest } from './direct.ts';

/** A client that sends no byte for so many milliseconds has stopped sending. */
const STOPPED_AFTER = 5_000;
/** The most bytes that a refused client may still send before its connection is closed. */
const MOST_DISCARDED = 64 * 1024 * 1024;
const JSON_TYPE = 'application/json; charset=utf-8';

/** What a handler answers with. */
export interface Answer {
  status: number;
  /** Bytes are not copied for a client that reads slowly, so what is large and kept should be bytes. */
  body: string | Buffer;
  /** The body is a text of ASCII characters only, so its length is its number of bytes. */
  isAscii?: boolean;
  /** Further headers as a flat list: name, value, name, value. An answer without them has a JSON body. */
  headers?: readonly string[];
  /** A request header, besides `Origin`, that the answer depends on. */
  vary?: string;
  /** Whether the client is still sending the request. */
  isEarly?: boolean;
}

/** Writes an answer to the socket, with the headers that every answer of the lane carries. */
export function send(request: LaneRequest, response: ServerResponse, answer: Answer): void {
  const { status, body, headers, vary } = answer;
  const { origin } = request.headers;
  const own = ['x-request-id', request.id, 'vary', vary === undefined ? 'Origin' : `Origin, ${vary}`];
  const isEmpty = body.length === 0;
  const length = answer.isAscii ? body.length : Buffer.byteLength(body);
  // 204 has no length, and 304 has that of the answer that it stands for.
  if (status !== 204 && status !== 304) own.push('content-length', String(length));
  if (headers) own.push(...headers);
  else if (!isEmpty) own.push('content-type', JSON_TYPE);
  // Pages of any site may read the answer. Older clients send cookies, and then a browser accepts no `*` here.
  if (origin !== undefined) {
    own.push('access-control-allow-origin', origin, 'access-control-allow-credentials', 'true');
    own.push('access-control-expose-headers', 'x-request-id, retry-after, etag');
  }
  response.writeHead(status, own);
  if (answer.isEarly && !isEmpty) endAfterRequest(request.raw, response, body);
  // A short text of Latin-1 is written to the socket at once. One of UTF-8 needs memory of its own, and another turn.
  else response.end(body, answer.isAscii ? 'latin1' : 'utf8');
}

/** Answers with an error and returns its status. Once an answer has begun, it can only break the connection. */
export function refuse(request: LaneRequest, response: ServerResponse, error: ApiError): number {
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
  // The rest of this request would be read as the next one.
  if (isEarly) own.push('connection', 'close');
  send(request, response, { status, body: JSON.stringify(body), headers: own, isEarly });
  return status;
}

/**
 * Answers a request that is still being sent: writes the body at once, and closes when the client has stopped sending.
 * A connection that closes earlier breaks while the client writes. Many clients then never see the answer. They send
 * the same request again instead of a smaller one.
 */
function endAfterRequest(request: IncomingMessage, response: ServerResponse, body: string | Buffer): void {
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

/** The answer to a browser that asks whether it may send (a CORS preflight). */
export const preflight = ({ request: { headers } }: { request: Pick<LaneRequest, 'headers'> }): Answer => ({
  status: 200,
  body: '',
  vary: 'Access-Control-Request-Headers',
  headers: [
    'access-control-allow-methods',
    'GET, HEAD, POST, OPTIONS',
    'access-control-max-age',
    '86400',
    // Tracing tools add headers of their own, so every header is allowed.
    ...(headers['access-control-request-headers'] === undefined
      ? []
      : ['access-control-allow-headers', headers['access-control-request-headers'] as string]),
  ],
});
