import { STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { isDatabaseUnavailable, isLockTimeout } from '../db/pool.ts';
import { isStatementTimeout } from '../db/reading.ts';
import { NoTurnError } from '../db/turns.ts';
import { Refusal } from '../refusals.ts';

export interface ErrorBody {
  type:
    | 'authentication_error'
    | 'invalid_request'
    | 'validation_error'
    | 'throttled_error'
    | 'server_error'
    | 'quota_limited';
  code: string;
  detail: string;
  attr: string | null;
  /** The refused elements of a list, when the error is about several. */
  errors?: { index: number; reason: string }[];
  /** Says more, when `detail` must stay a sentence that clients know. */
  reason?: string;
}

/** An error answer of the API. `toApiError` translates other errors; one that it does not know becomes a plain 500. */
export class ApiError extends Error {
  override name = 'ApiError';
  readonly status: number;
  readonly body: ErrorBody;
  readonly headers: Record<string, string>;
  /** Whether the answer has only a status and headers. */
  readonly isSilent: boolean;

  constructor(status: number, body: ErrorBody, headers: Record<string, string> = {}, isSilent = false) {
    super(body.detail);
    this.status = status;
    this.body = body;
    this.headers = headers;
    this.isSilent = isSilent;
  }

  withoutBody(): ApiError {
    return new ApiError(this.status, this.body, this.headers, true);
  }
}

const refuse =
  (status: number, type: ErrorBody['type'], code: string) =>
  (detail: string, headers: Record<string, string> = {}): ApiError =>
    new ApiError(status, { type, code, detail, attr: null }, headers);

/** All errors of the API. Only a 429 and a 503 are worth a retry; their `Retry-After` says when. */
export const errors = {
  notAuthenticated: () =>
    refuse(
      401,
      'authentication_error',
      'not_authenticated',
    )('Authentication credentials were not provided.', {
      'www-authenticate': 'Bearer',
    }),
  authenticationFailed: (detail: string) =>
    refuse(401, 'authentication_error', 'authentication_failed')(detail, { 'www-authenticate': 'Bearer' }),
  permissionDenied: refuse(403, 'authentication_error', 'permission_denied'),
  notFound: (detail = 'Not found.') => refuse(404, 'invalid_request', 'not_found')(detail),
  methodNotAllowed: (method: string, allowed: string[]) =>
    refuse(
      405,
      'invalid_request',
      'method_not_allowed',
    )(`Method "${method}" not allowed.`, {
      allow: allowed.join(', '),
    }),
  notAcceptable: refuse(406, 'invalid_request', 'not_acceptable'),
  conflict: (detail: string, headers: Record<string, string> = {}, code = 'conflict') =>
    refuse(409, 'server_error', code)(detail, headers),
  tooLarge: (limit: number) =>
    refuse(413, 'invalid_request', 'request_too_large')(`The request body is larger than ${limit} bytes.`),
  unsupportedMediaType: (mediaType: string) =>
    refuse(
      415,
      'invalid_request',
      'unsupported_media_type',
    )(`Unsupported media type "${mediaType}" in request.`),
  parseError: (reason: string) =>
    refuse(400, 'invalid_request', 'parse_error')(`JSON parse error - ${reason}`),
  malformed: refuse(400, 'invalid_request', 'parse_error'),
  throttled: (seconds: number) =>
    refuse(
      429,
      'throttled_error',
      'throttled',
    )(`Request was throttled. Expected available in ${seconds} second${seconds === 1 ? '' : 's'}.`, {
      'retry-after': String(seconds),
    }),
  unavailable: (detail: string, seconds: number) =>
    refuse(503, 'server_error', 'unavailable')(detail, { 'retry-after': String(seconds) }),
  internal: () => refuse(500, 'server_error', 'error')('A server error occurred.'),
  /** An invalid field. `attr` is null when the error is about the whole body. */
  validation: (code: string, detail: string, attr: string | null, reason?: string | null) =>
    new ApiError(400, { type: 'validation_error', code, detail, attr, ...(reason ? { reason } : {}) }),
  /** Too many operations of one kind are under way. */
  tooMany: (detail: string, seconds: number) =>
    refuse(429, 'throttled_error', 'throttled')(detail, { 'retry-after': String(seconds) }),
} as const;

const DATABASE_RETRY_SECONDS = 2;
const TURN_RETRY_SECONDS = 5;
/** SQLSTATEs that a value of the request can cause: a string that Postgres cannot store, a number out of range. */
const BAD_VALUE_STATES = new Set(['22021', '22P05', '22003', '22P02', '22007', '22008', '22009']);

interface FastifyFailure extends Error {
  code?: string;
  statusCode?: number;
}

/** Translates the refusal of a command into an error of the API. */
function ofRefusal({ kind, message, code, field, reason, retrySeconds }: Refusal): ApiError {
  switch (kind) {
    case 'invalid':
      return errors.validation(code, message, field, reason);
    case 'absent':
      return errors.notFound(message);
    case 'forbidden':
      return errors.permissionDenied(message);
    case 'contested':
      return errors.conflict(message, { 'retry-after': String(retrySeconds) }, code);
    case 'crowded':
      return errors.tooMany(message, retrySeconds);
    case 'unavailable':
      return errors.unavailable(message, retrySeconds);
  }
}

/** Turns whatever was thrown into an error of the API. No other place does this. */
export function toApiError(
  error: unknown,
  request: Pick<FastifyRequest, 'headers'> & Partial<Pick<FastifyRequest, 'routeOptions'>>,
): ApiError {
  if (error instanceof ApiError) return error;
  if (error instanceof Refusal) return ofRefusal(error);
  if (error instanceof NoTurnError) {
    const refusal = error.isOwnFault ? errors.tooMany : errors.unavailable;
    return refusal(error.message, TURN_RETRY_SECONDS);
  }
  if (isLockTimeout(error)) {
    return errors.unavailable(
      'Somebody else is changing the same thing at the moment. Try again.',
      DATABASE_RETRY_SECONDS,
    );
  }
  if (isStatementTimeout(error)) {
    return errors.unavailable('The database took too long to answer. Try again.', DATABASE_RETRY_SECONDS);
  }
  if (isDatabaseUnavailable(error)) {
    return errors.unavailable(
      'The database is not available at the moment. Try again.',
      DATABASE_RETRY_SECONDS,
    );
  }
  const failure = error as FastifyFailure;
  const code = failure.code ?? '';
  if (BAD_VALUE_STATES.has(code)) {
    return errors.validation(
      'invalid_input',
      'A value cannot be stored: it is malformed or out of range.',
      null,
    );
  }
  if (code === 'FST_ERR_CTP_BODY_TOO_LARGE') return errors.tooLarge(request.routeOptions?.bodyLimit ?? 0);
  if (code === 'FST_ERR_CTP_INVALID_MEDIA_TYPE' || code === 'FST_ERR_CTP_EMPTY_TYPE') {
    return errors.unsupportedMediaType(request.headers['content-type'] ?? '');
  }
  if (code.startsWith('FST_ERR_CTP') || (failure.statusCode === 400 && code !== '')) {
    return errors.malformed(failure.message);
  }
  if (failure.statusCode !== undefined && failure.statusCode >= 400 && failure.statusCode < 500) {
    return new ApiError(failure.statusCode, {
      type: 'invalid_request',
      code: 'invalid_input',
      detail: failure.message,
      attr: null,
    });
  }
  return errors.internal();
}

export function sendError(error: unknown, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  const answer = toApiError(error, request);
  if (answer.status >= 500)
    request.log.error({ err: error, url: request.routeOptions.url }, 'request failed');
  reply.code(answer.status).header('x-request-id', request.id).headers(answer.headers);
  if (answer.isSilent) return reply.send();
  return reply.type('application/json; charset=utf-8').send(answer.body);
}

const BAD_HTTP: Record<string, number> = { HPE_HEADER_OVERFLOW: 431, ERR_HTTP_REQUEST_TIMEOUT: 408 };

/** Answers bytes that are not valid HTTP. They never reach a route, but the answer has the usual form. */
export function refuseBadHttp(error: Error & { code?: string }, socket: Socket): void {
  if (!socket.writable || error.code === 'ECONNRESET') {
    socket.destroy();
    return;
  }
  const status = BAD_HTTP[error.code ?? ''] ?? 400;
  const body: ErrorBody = {
    type: 'invalid_request',
    code: 'parse_error',
    detail: `${STATUS_CODES[status]}.`,
    attr: null,
  };
  const text = JSON.stringify(body);
  socket.end(
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\nConnection: close\r\nContent-Type: application/json; charset=utf-8\r\n` +
      `Content-Length: ${Buffer.byteLength(text)}\r\n\r\n${text}`,
  );
}
