import type { IncomingMessage, RequestListener, Server, ServerResponse } from 'node:http';
import { requestArrived } from '../db/loop-turns.ts';
import { isListed, type Network, networkList, parseNetwork, plainAddress } from '../values/addresses.ts';
import { clientNetwork } from '../values/clients.ts';

/** How many requests begin in one turn of the event loop, at least if as many wait. */
const PER_TURN = 4;
/** Further ones begin in a turn that has lasted for fewer milliseconds: every turn costs something itself. */
const SHORT = 0.5;
/** Work on a larger body is done in pieces, which make way for smaller requests. */
export const SMALL_BODY = 64 * 1024;

interface Request {
  request: IncomingMessage;
  response: ServerResponse;
}

const proxyTest = (proxies: readonly string[]) => {
  const trusted = networkList(proxies.map(parseNetwork).filter((one): one is Network => one !== undefined));
  return (text: string) => {
    const address = plainAddress(text);
    return address !== undefined && isListed(trusted, address);
  };
};

/** Returns the address of a request's client. Trusted proxies name their clients. */
export function addressOf(proxies: readonly string[]): (request: IncomingMessage) => string {
  const isProxy = proxyTest(proxies);
  return ({ socket, headers }) => {
    const peer = socket.remoteAddress ?? '';
    const forwarded = headers['x-forwarded-for'];
    if (forwarded === undefined || !isProxy(peer)) return peer;
    const names = String(forwarded)
      .split(',')
      .map((one) => one.trim())
      .reverse();
    return names.find((one) => !isProxy(one)) ?? (names.at(-1) as string);
  };
}

/** Returns who sends a request: an address, or a network of IPv6 addresses. Trusted proxies name their clients. */
export function senderOf(proxies: readonly string[]): (request: IncomingMessage) => string {
  const isProxy = proxyTest(proxies);
  return ({ socket, headers }) => {
    const peer = socket.remoteAddress ?? '';
    const forwarded = headers['x-forwarded-for'];
    if (forwarded === undefined || !isProxy(peer)) return clientNetwork(peer);
    const names = String(forwarded).split(',').reverse();
    return clientNetwork(names.map((one) => one.trim()).find((one) => !isProxy(one)) ?? peer);
  };
}

/**
 * Begins few requests in each turn of the event loop, of each client in turn. One that sends hundreds at once would
 * otherwise fill every turn, and a request of another one needs several. Turns have to be short for new connections too:
 * in each one, the server accepts a single connection.
 */
export function fairStarts(
  handle: RequestListener,
  sender: (request: IncomingMessage) => string,
  perTurn = PER_TURN,
  short = SHORT,
): RequestListener {
  /** The requests of each client that wait. The client whose turn is next comes first. */
  const waiting = new Map<string, Request[]>();
  let begun = 0;
  let turnBegan = 0;
  let isScheduled = false;

  function schedule(): void {
    if (!isScheduled) setImmediate(turn);
    isScheduled = true;
  }
  /** Counts a request that is about to begin, if one more may. */
  function mayBegin(): boolean {
    if (begun === 0) turnBegan = performance.now();
    else if (begun >= perTurn && performance.now() - turnBegan >= short) return false;
    begun += 1;
    return true;
  }
  function turn(): void {
    isScheduled = false;
    begun = 0;
    for (const [client, requests] of waiting) {
      if (!mayBegin()) return;
      schedule();
      const { request, response } = requests.shift() as Request;
      waiting.delete(client);
      if (requests.length > 0) waiting.set(client, requests);
      if (!request.socket.destroyed) handle(request, response);
    }
  }
  return (request, response) => {
    // What came in the same piece as the request for which its connection was closed.
    if (request.socket.destroyed) return;
    if (!(Number(request.headers['content-length']) > SMALL_BODY)) requestArrived();
    schedule();
    if (waiting.size === 0 && mayBegin()) {
      handle(request, response);
      return;
    }
    const client = sender(request);
    const requests = waiting.get(client);
    if (requests) requests.push({ request, response });
    else waiting.set(client, [{ request, response }]);
  };
}

/** Puts the turns before what handles the requests of a server. */
export function letTakeTurns(server: Server, proxies: readonly string[]): void {
  const sender = senderOf(proxies);
  for (const handle of server.listeners('request') as RequestListener[]) {
    server.off('request', handle);
    server.on('request', fairStarts(handle, sender));
  }
}
