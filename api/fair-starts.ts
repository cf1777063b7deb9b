import type { IncomingMessage, RequestListener, Server, ServerResponse } from 'node:http';
import { requestArrived } from '../db/loop-turns.ts';
import { isListed, type Network, networkList, parseNetwork, plainAddress } from '../values/addresses.ts';
import { clientNetwork } from '../values/clients.ts';

/** How many requests of one client begin in one turn of the event loop. */
const PER_TURN = 8;
/** Work on a larger body is done in pieces, which make way for smaller requests. */
const SMALL_BODY = 64 * 1024;

interface Request {
  request: IncomingMessage;
  response: ServerResponse;
}

/** Returns who sends a request: an address, or a network of IPv6 addresses. Trusted proxies name their clients. */
export function senderOf(proxies: readonly string[]): (request: IncomingMessage) => string {
  const trusted = networkList(proxies.map(parseNetwork).filter((one): one is Network => one !== undefined));
  const isProxy = (text: string) => {
    const address = plainAddress(text);
    return address !== undefined && isListed(trusted, address);
  };
  return ({ socket, headers }) => {
    const peer = socket.remoteAddress ?? '';
    const forwarded = headers['x-forwarded-for'];
    if (forwarded === undefined || !isProxy(peer)) return clientNetwork(peer);
    const names = String(forwarded).split(',').reverse();
    return clientNetwork(names.map((one) => one.trim()).find((one) => !isProxy(one)) ?? peer);
  };
}

/**
 * Lets clients take turns where each has few requests at once. One that sends hundreds at once would otherwise fill each
 * turn of the event loop, and a request of another one, which needs several turns, would wait for hundreds in each.
 */
export function fairStarts(
  handle: RequestListener,
  sender: (request: IncomingMessage) => string,
  perTurn = PER_TURN,
): RequestListener {
  const begun = new Map<string, number>();
  const waiting = new Map<string, Request[]>();
  let isScheduled = false;

  function schedule(): void {
    if (!isScheduled) setImmediate(turn);
    isScheduled = true;
  }
  function turn(): void {
    isScheduled = false;
    begun.clear();
    for (const [client, requests] of waiting) {
      const next = requests.splice(0, perTurn);
      if (requests.length === 0) waiting.delete(client);
      begun.set(client, next.length);
      schedule();
      for (const { request, response } of next) if (!request.socket.destroyed) handle(request, response);
    }
  }
  return (request, response) => {
    if (!(Number(request.headers['content-length']) > SMALL_BODY)) requestArrived();
    const client = sender(request);
    const requests = waiting.get(client);
    const already = begun.get(client) ?? 0;
    schedule();
    if (requests) requests.push({ request, response });
    else if (already >= perTurn) waiting.set(client, [{ request, response }]);
    else {
      begun.set(client, already + 1);
      handle(request, response);
    }
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
