import type { ServerResponse } from 'node:http';
import type { FastifyRequest, onRequestHookHandler } from 'fastify';
import type { DurationHistogram } from '../../telemetry/durations.ts';
import { type ApiError, errors, toApiError } from '../errors.ts';
import type { BodyPool } from './body-pool.ts';
import type { Gate, Ticket } from './gate.ts';
import { endAfterRequest } from './linger.ts';
import { MemoryAfterRush } from './memory.ts';
import { IDLE_MILLISECONDS, IdleWatch, readBody } from './read-body.ts';
import { RefusalLog } from './refusal-log.ts';

/** A request whose body is there. */
export interface Incoming {
  request: FastifyRequest;
  body: Buffer;
  /** What it holds of the memory for bodies; given back when it is answered. */
  ticket: Ticket;
}

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

/** What a route does: takes bytes, says what to answer, throws what to refuse with. */
export type Handle = (incoming: Incoming) => Answer | Promise<Answer>;

const JSON_TYPE = 'application/json; charset=utf-8';
const NOTHING = Buffer.alloc(0);
const NOT_PREPARED = 'The database is being brought up to date. Send it again.';

/**
 * What the framework does for a request costs as much as storing an event: so capture reads and answers by itself.
 * The framework still finds the route, parses its query, and knows the client's address and the request's id.
 */
export class Exchanges {
  readonly #gate: Gate;
  readonly #durations: DurationHistogram;
  readonly #isPrepared: () => boolean;
  readonly #idle: IdleWatch;
  readonly #bodies: BodyPool;
  readonly #memory: MemoryAfterRush;
  readonly #log = new RefusalLog();

  constructor(deps: {
    gate: Gate;
    bodies: BodyPool;
    durations: DurationHistogram;
    isPrepared: () => boolean;
    idle?: number | undefined;
  }) {
    this.#gate = deps.gate;
    this.#bodies = deps.bodies;
    this.#memory = new MemoryAfterRush({ before: () => deps.bodies.clear() });
    this.#durations = deps.durations;
    this.#isPrepared = deps.isPrepared;
    this.#idle = new IdleWatch(deps.idle ?? IDLE_MILLISECONDS);
  }

  close(): void {
    this.#idle.close();
    this.#memory.close();
  }

  /** The way of a request through `handle`, as the hook that the framework begins a route with. */
  hook(route: string, handle: Handle): onRequestHookHandler {
    const usual = new Map(
      ['GET', 'HEAD', 'POST'].map((method) => [method, this.#series(method, route, 200)]),
    );
    return (request, reply) => {
      reply.hijack();
      const { raw } = request;
      const response = reply.raw;
      const began = performance.now();
      const ticket: Ticket = { bytes: 0, atWork: 0 };
      const end = (status: number) => {
        this.#gate.leave(ticket);
        const series = (status === 200 && usual.get(raw.method as string)) || undefined;
        const durations = series ?? this.#series(raw.method as string, route, status);
        durations.observe((performance.now() - began) / 1000);
      };
      const succeed = (answer: Answer) => {
        send(request, response, answer);
        end(answer.status);
      };
      const fail = (error: unknown) => {
        const refusal = toApiError(error, request);
        if (refusal.status >= 500) this.#log.tell(request, error, refusal.status, route);
        end(refuse(request, response, refusal));
      };
      const proceed = (body: Buffer) => {
        this.#memory.used(body.length);
        try {
          const answer = handle({ request, body, ticket });
          if (answer instanceof Promise) answer.then(succeed).catch(fail);
          else succeed(answer);
        } catch (error) {
          fail(error);
        }
      };
      if (!this.#isPrepared()) {
        fail(errors.unavailable(NOT_PREPARED, 2));
      } else if (raw.method === 'GET' || raw.method === 'HEAD') {
        proceed(NOTHING);
      } else {
        const context = { gate: this.#gate, ticket, watch: this.#idle, bodies: this.#bodies };
        readBody(raw, context, (error, body) => {
          if (error) fail(error);
          else proceed(body as Buffer);
        });
      }
    };
  }

  #series(method: string, route: string, status: number) {
    return this.#durations.series({ method, route, status: String(status) });
  }
}

function send(request: FastifyRequest, response: ServerResponse, answer: Answer): void {
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
function refuse(request: FastifyRequest, response: ServerResponse, error: ApiError): number {
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
