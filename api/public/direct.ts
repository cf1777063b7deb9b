import type { IncomingMessage, RequestListener, Server, ServerResponse } from 'node:http';
import { parse } from 'node:querystring';
import type { FastifyRequest } from 'fastify';

/** What of a request the lane and its handlers use. */
export type LaneRequest = Pick<FastifyRequest, 'id' | 'ip' | 'headers' | 'query' | 'params' | 'raw' | 'log'>;

/** Answers a request, from its body to its metrics. It never throws. */
export type Exchange = (request: LaneRequest, response: ServerResponse) => void;

/** What answers the requests of a route, and which of them go directly. Without `takes`, all do. */
interface DirectRoute {
  exchange: Exchange;
  takes?: ((request: IncomingMessage) => boolean) | undefined;
}

export interface DirectOptions {
  idOf(request: IncomingMessage): string;
  /** The address of the client, which trusted proxies name. */
  addressOf(request: IncomingMessage): string;
  log: FastifyRequest['log'];
}

const NO_PARAMETERS = Object.freeze({});

class DirectRequest implements LaneRequest {
  readonly raw: IncomingMessage;
  readonly id: string;
  readonly query: LaneRequest['query'];
  readonly params = NO_PARAMETERS;
  readonly #options: DirectOptions;

  constructor(raw: IncomingMessage, query: LaneRequest['query'], options: DirectOptions) {
    this.raw = raw;
    this.id = options.idOf(raw);
    this.query = query;
    this.#options = options;
  }

  get headers(): LaneRequest['headers'] {
    return this.raw.headers;
  }

  get ip(): string {
    return this.#options.addressOf(this.raw);
  }

  get log(): LaneRequest['log'] {
    return this.#options.log;
  }
}

/**
 * The shortest way to the routes of the lane: a request whose path is exactly that of a route reaches its exchange without the
 * framework, which would cost more than a small request itself. All others take the way of the framework: paths with
 * parameters, other methods, unusual spellings of a path, and all requests as soon as the server closes.
 */
export class DirectRoutes {
  readonly #options: DirectOptions;
  readonly #routes = new Map<string, Map<string, DirectRoute>>();
  /** Clients send the same few queries again and again. */
  #lastQuery = '';
  #lastParsed: LaneRequest['query'] = parse('');
  #isOpen = true;

  constructor(options: DirectOptions) {
    this.#options = options;
  }

  /** `takes` chooses the requests that go directly. All others take the way of the framework. */
  add(method: string, path: string, exchange: Exchange, takes?: DirectRoute['takes']): void {
    if (/[:*]/.test(path)) return;
    const route = { exchange, takes };
    const bare = path.replace(/\/$/, '');
    const ofMethod = this.#routes.get(method) ?? new Map<string, DirectRoute>();
    this.#routes.set(method, ofMethod.set(bare, route).set(`${bare}/`, route));
  }

  /** From now on all requests take the way of the framework. */
  close(): void {
    this.#isOpen = false;
  }

  /** Returns whether the request is taken. */
  take(request: IncomingMessage, response: ServerResponse): boolean {
    const { url = '', method = '' } = request;
    const end = url.indexOf('?');
    const route = this.#routes.get(method)?.get(end < 0 ? url : url.slice(0, end));
    if (!route || !this.#isOpen || route.takes?.(request) === false) return false;
    const query = end < 0 ? '' : url.slice(end + 1);
    if (query.includes('#')) return false;
    if (query !== this.#lastQuery) {
      this.#lastParsed = parse(query, '&', '=', { maxKeys: 0 });
      this.#lastQuery = query;
    }
    route.exchange(new DirectRequest(request, this.#lastParsed, this.#options), response);
    return true;
  }
}

/** Puts the direct routes before what handles the requests of a server. */
export function goDirectly(server: Server, routes: DirectRoutes): void {
  for (const handle of server.listeners('request') as RequestListener[]) {
    server.off('request', handle);
    server.on('request', (request, response) => {
      if (!routes.take(request, response)) handle(request, response);
    });
  }
}
