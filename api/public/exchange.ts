import type { Queryable } from '../../db/pool.ts';
import type { DurationHistogram } from '../../telemetry/durations.ts';
import { Quiet } from '../../telemetry/quiet.ts';
import { errors, toApiError } from '../errors.ts';
import { type Answer, refuse, send } from './answer.ts';
import type { MemoryAfterRush } from './body-memory.ts';
import type { Exchange, LaneRequest } from './direct.ts';
import { newTicket, type Ticket } from './gate.ts';
import { type Reading, readBody } from './read-body.ts';

const NOTHING = Buffer.alloc(0);
const NOT_PREPARED = 'The database is being brought up to date. Send it again.';

/** A request with its whole body. */
export interface Incoming {
  request: LaneRequest;
  body: Buffer;
  /** What the request holds of its product's gate. The lane gives it back with the answer. */
  ticket: Ticket;
}

/** What a route does: it returns the answer, or throws the refusal. */
export type Handle = (incoming: Incoming) => Answer | Promise<Answer>;

/** What an exchange works with: the same for all routes of one product. */
export interface ExchangeContext extends Reading {
  durations: DurationHistogram;
  /** Whether requests can be answered yet. */
  isPrepared: () => boolean;
  memory: MemoryAfterRush;
  log: RefusalLog;
}

/**
 * What answers the requests of a route: it reads the body, calls the handler and writes the answer. The usual way through the
 * framework costs as much as the work of a small request itself.
 */
export function exchange(route: string, handle: Handle, context: ExchangeContext): Exchange {
  const { gate, durations, isPrepared, memory, log } = context;
  const seriesOf = (method: string, status: number) =>
    durations.series({ method, route, status: String(status) });
  const usual = new Map(['GET', 'HEAD', 'POST'].map((method) => [method, seriesOf(method, 200)]));
  return (request, response) => {
    const { raw } = request;
    const began = performance.now();
    const ticket = newTicket();
    const end = (status: number) => {
      gate.leave(ticket);
      const series = (status === 200 && usual.get(raw.method as string)) || undefined;
      (series ?? seriesOf(raw.method as string, status)).observe((performance.now() - began) / 1000);
    };
    const succeed = (answer: Answer) => {
      send(request, response, answer);
      end(answer.status);
    };
    const fail = (error: unknown) => {
      const refusal = toApiError(error, request);
      if (refusal.status >= 500) log.tell(request, error, refusal.status, route);
      end(refuse(request, response, refusal));
    };
    const proceed = (body: Buffer) => {
      memory.used(body.length);
      try {
        const answer = handle({ request, body, ticket });
        // A handler that need not wait makes no promise: that is one turn less for each request.
        if (answer instanceof Promise) answer.then(succeed).catch(fail);
        else succeed(answer);
      } catch (error) {
        fail(error);
      }
    };
    if (!isPrepared()) {
      fail(errors.unavailable(NOT_PREPARED, 2));
    } else if (raw.method === 'GET' || raw.method === 'HEAD') {
      proceed(NOTHING);
    } else {
      readBody(raw, ticket, context, (error, body) => {
        if (error) fail(error);
        else proceed(body as Buffer);
      });
    }
  };
}

/** Refuses to ask a database that has another schema than this version, or has not been reached yet. */
export function whenPrepared(queryable: Queryable, isPrepared: () => boolean): Queryable {
  const query = async (...given: Parameters<typeof queryable.query>) => {
    if (!isPrepared()) throw errors.unavailable(NOT_PREPARED, 2);
    return queryable.query(...given);
  };
  return { query } as unknown as Queryable;
}

/**
 * Logs every fault of the server, but refusals with 503 only once a second, with the number of the others. While
 * Postgres is away every request is refused, and a line for each could fill the disk that Postgres waits for.
 */
export class RefusalLog {
  readonly #quiet: Quiet;

  constructor(now?: () => number) {
    this.#quiet = new Quiet(now);
  }

  tell(request: Pick<LaneRequest, 'id' | 'log'>, error: unknown, status: number, route: string): void {
    const about = { err: error, reqId: request.id, url: route };
    if (status !== 503) {
      request.log.error(about, 'request failed');
      return;
    }
    this.#quiet.tell((untold) => request.log.warn({ ...about, untold }, 'requests are sent away for now'));
  }
}

/** The query of a request as the framework parses it. */
export type Query = Readonly<Record<string, string | string[] | undefined>>;

/** The value of a query parameter; the last one when the parameter is repeated. */
export function lastOf(value: string | string[] | undefined): string | undefined {
  return Array.isArray(value) ? value.at(-1) : value;
}
