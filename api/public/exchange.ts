import type { FastifyRequest, onRequestHookHandler } from 'fastify';
import type { DurationHistogram } from '../../telemetry/durations.ts';
import { errors, toApiError } from '../errors.ts';
import { type Answer, refuse, send } from './answer.ts';
import { type BodyPool, MemoryAfterRush } from './body-memory.ts';
import type { Gate, Ticket } from './gate.ts';
import { IDLE_MILLISECONDS, IdleWatch, readBody } from './read-body.ts';

/** Milliseconds after a line in which further refusals are only counted. */
const QUIET = 1_000;
/** Some proxies put the port behind the address; only an address of version 6 in brackets can have one. */
const WITH_PORT = /^(?:(\d{1,3}(?:\.\d{1,3}){3}):\d{1,5}|\[([\da-f:.]+)\](?::\d{1,5})?)$/i;
const MAPPED = '::ffff:';

/** A request whose body is there. */
export interface Incoming {
  request: FastifyRequest;
  body: Buffer;
  /** What it holds of the memory for bodies; given back when it is answered. */
  ticket: Ticket;
}

/** What a route does: takes bytes, says what to answer, throws what to refuse with. */
export type Handle = (incoming: Incoming) => Answer | Promise<Answer>;

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

/**
 * Tells the log of faults of ours, each, and that requests are sent away for now, once a second: while Postgres is
 * away that is every request, and a line for each would fill the disk that is to become free again.
 */
export class RefusalLog {
  readonly #now: () => number;
  #quietUntil = 0;
  #untold = 0;

  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  tell(request: Pick<FastifyRequest, 'id' | 'log'>, error: unknown, status: number, route: string): void {
    const about = { err: error, reqId: request.id, url: route };
    if (status !== 503) {
      request.log.error(about, 'request failed');
      return;
    }
    const now = this.#now();
    if (now < this.#quietUntil) {
      this.#untold += 1;
      return;
    }
    request.log.warn({ ...about, untold: this.#untold }, 'requests are sent away for now');
    this.#untold = 0;
    this.#quietUntil = now + QUIET;
  }
}

export type CaptureQuery = Readonly<Record<string, string | string[] | undefined>>;

/** Of a parameter that comes several times, the last one. */
export function lastOf(value: string | string[] | undefined): string | undefined {
  return Array.isArray(value) ? value.at(-1) : value;
}

/** Where a request came from, in its usual spelling: IPv4 where a socket for both families shows it as IPv6. */
export function clientAddress(ip: string | undefined): string | undefined {
  if (ip === undefined) return ip;
  const address = ip.startsWith(MAPPED) && ip.includes('.') ? ip.slice(MAPPED.length) : ip;
  if (!address.includes(':')) return address;
  const match = WITH_PORT.exec(address);
  return match ? (match[1] ?? clientAddress(match[2])) : address;
}
