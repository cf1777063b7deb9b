// Requests to functions that take them, and what such functions answer.
import { DEPTH_HEADER, depthOfRequest, TOO_DEEP } from '../../values/function-depth.ts';
import { isObject } from '../../values/json-object.ts';
import { exceeds } from '../../values/nesting.ts';

/** A request as it comes. */
export interface IncomingRequest {
  method: string;
  headers: Readonly<Record<string, string | string[] | undefined>>;
  query: Readonly<Record<string, string | string[] | undefined>>;
  ip: string | undefined;
  body: Buffer;
}

/** What a program sees of a request. */
export interface SeenRequest {
  method: string;
  headers: Record<string, string>;
  query: Record<string, string>;
  ip: string;
  body: unknown;
  stringBody: string;
}

/** A request for a function. */
export interface WebhookRequest {
  seen: SeenRequest;
  /** How many functions, one after the other, have led to it. */
  depth: number;
}

export interface WebhookAnswer {
  status: number;
  body: Buffer;
  /** Undefined: there is no body. */
  contentType: string | undefined;
}

export const MOST_WEBHOOK_BYTES = 512_000;
/** How deep the JSON of a body may nest. Deeper values cannot be handed on. */
const DEEPEST = 200;
const LONGEST_ANSWER = 256 * 1024;

/** Headers that are for Sluice, say something of the way that a request has taken, or belong to somebody's browser. */
const LEFT_OUT = new Set([
  ...['x-forwarded-for', 'x-forwarded-host', 'x-forwarded-proto', 'x-forwarded-port', 'forwarded'],
  ...['x-real-ip', 'true-client-ip', 'cookie', 'x-csrftoken', 'proxy-authorization', 'referer'],
  DEPTH_HEADER.toLowerCase(),
]);

/** The body of a request cannot be read. The message says why. */
export class BodyError extends Error {
  override readonly name = 'BodyError';
}

/** Several values of a name become one text with commas. */
const joined = (given: IncomingRequest['query']): Record<string, string> =>
  Object.fromEntries(
    Object.entries(given).flatMap(([name, value]) =>
      value === undefined ? [] : [[name, Array.isArray(value) ? value.join(',') : value]],
    ),
  );

function parsedBody(text: string, contentType: string): unknown {
  if (text === '') return {};
  if (/^application\/x-www-form-urlencoded\b/i.test(contentType)) {
    return Object.fromEntries(new URLSearchParams(text));
  }
  const isJson = contentType === '' || /^[^;]*\bjson\b/i.test(contentType);
  if (!isJson) return text;
  // To parse what nests very deep takes a hundred times as long as other JSON.
  if (exceeds(text, { depth: DEEPEST })) throw new BodyError(`The body nests deeper than ${DEEPEST} levels.`);
  try {
    return JSON.parse(text);
  } catch {
    if (contentType === '') return text;
    throw new BodyError('The body is not valid JSON.');
  }
}

/** Reads a request. Throws a BodyError. */
export const webhookRequest = (request: IncomingRequest): WebhookRequest => ({
  seen: seenRequest(request),
  depth: depthOfRequest(request.headers),
});

/** Returns what a program sees of a request. Throws a BodyError. */
export function seenRequest({ method, headers, query, ip, body }: IncomingRequest): SeenRequest {
  const stringBody = body.toString('utf8');
  const kept = Object.entries(joined(headers)).map(([name, value]) => [name.toLowerCase(), value] as const);
  const contentType = String(headers['content-type'] ?? '');
  return {
    method,
    headers: Object.fromEntries(kept.filter(([name]) => !LEFT_OUT.has(name))),
    query: joined(query),
    ip: ip ?? '',
    body: parsedBody(stringBody, contentType),
    stringBody,
  };
}

const TEXT = 'text/plain';
const BYTES = 'application/octet-stream';
/** None of them lets a browser run what is in the body. */
const CONTENT_TYPES = new Set([
  ...[TEXT, 'text/csv', 'application/json', BYTES, 'application/xml'],
  ...['image/gif', 'image/png', 'image/jpeg', 'image/webp'],
]);

const json = (status: number, value: unknown): WebhookAnswer => ({
  status,
  body: Buffer.from(JSON.stringify(value)),
  contentType: 'application/json',
});

export const FINISHED = json(200, { status: 'ok' });
/** The answer to a request that workers run later, because the program waits for something, or because it takes long. */
export const QUEUED = json(201, { status: 'queued' });
export const ACCEPTED: WebhookAnswer = { status: 200, body: Buffer.alloc(0), contentType: undefined };
export const DISABLED = json(429, { error: 'Disabled' });
export const UNHANDLED = json(500, { status: 'Unhandled error' });
export const UNKNOWN = json(404, { error: 'Not found' });
export const TOO_LARGE = { error: 'Request entity too large' };
export const IN_CIRCLE = json(400, { error: TOO_DEEP });
export const faulty = (status: number, error: string) => json(status, { error });

/** Reads the answer that a program returned. Undefined: it leaves the answer to us. */
export function answerOf(result: unknown): WebhookAnswer | undefined {
  if (!isObject(result) || !isObject(result.httpResponse)) return undefined;
  const { status: asked, body: given, contentType: named, isBase64Encoded } = result.httpResponse;
  const isStatus = Number.isInteger(asked) && (asked as number) >= 200 && (asked as number) <= 599;
  const status = isStatus ? (asked as number) : 500;
  if (typeof given === 'object' && given !== null) return bounded(json(status, given));
  if (typeof given !== 'string') return { status, body: Buffer.alloc(0), contentType: undefined };
  const isBytes = isBase64Encoded === true;
  const bare = typeof named === 'string' ? (named.split(';')[0] as string).trim().toLowerCase() : '';
  const contentType = CONTENT_TYPES.has(bare) ? bare : isBytes ? BYTES : TEXT;
  return bounded({ status, body: Buffer.from(given, isBytes ? 'base64' : 'utf8'), contentType });
}

const bounded = (answer: WebhookAnswer): WebhookAnswer =>
  answer.body.length <= LONGEST_ANSWER
    ? answer
    : faulty(500, `The answer of the function is larger than ${LONGEST_ANSWER} bytes`);
