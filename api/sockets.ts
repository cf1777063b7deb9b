import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { isListed, type Network, networkList, parseNetwork, plainAddress } from '../values/addresses.ts';
import { clientNetwork } from '../values/clients.ts';

export interface SocketLimits {
  /** Connections of all clients. */
  total: number;
  /** Connections of one address, or of one network of IPv6 addresses. */
  perClient: number;
  /** Addresses and networks of proxies, which carry the requests of many. Only the total counts for them. */
  proxies: readonly string[];
}

/**
 * How many requests of a connection may wait for their answers. A client that sends more without reading is closed: each
 * costs a hundred times the memory of its bytes, and nobody would have bounded their number.
 */
export const MOST_UNANSWERED = 100;

/** The requests of a connection that are not answered yet. */
type Open = IncomingMessage[];

/** Waiting for a request, or for the rest of one, is no work: such a connection can be closed. */
const isAtWork = (open: Open): boolean => open.length > 0 && open.every((request) => request.complete);

/**
 * Bounds the connections of each client and of all. When there is one too many, the oldest that is not at work is
 * closed, so that a client with very many idle or slow ones loses these, and a new one gets through. Only if all are at
 * work is the new one closed. Returns what ends those without a request, and whatever comes later.
 */
export function boundSockets(server: Server, { total, perClient, proxies }: SocketLimits): () => void {
  // In the order in which they came.
  const all = new Map<Socket, Open>();
  const clients = new Map<string, Map<Socket, Open>>();
  const trusted = networkList(proxies.map(parseNetwork).filter((one): one is Network => one !== undefined));

  function isProxy(socket: Socket): boolean {
    const address = plainAddress(socket.remoteAddress ?? '');
    return address !== undefined && isListed(trusted, address);
  }

  /** Closes one of the connections, so that there are no more than `most`. */
  function keepWithin(sockets: Map<Socket, Open>, most: number): void {
    if (sockets.size <= most) return;
    const newest = [...sockets.keys()].at(-1);
    const idle = [...sockets].find(([socket, open]) => socket !== newest && !isAtWork(open));
    const closed = idle?.[0] ?? newest;
    closed?.destroy();
    if (closed) forget(closed);
  }

  function forget(socket: Socket): void {
    all.delete(socket);
    const client = clientOf.get(socket) as string;
    const own = clients.get(client);
    own?.delete(socket);
    if (own?.size === 0) clients.delete(client);
  }

  let isEnding = false;
  const clientOf = new WeakMap<Socket, string>();
  server.on('connection', (socket: Socket) => {
    if (isEnding) {
      socket.destroy();
      return;
    }
    const client = clientNetwork(socket.remoteAddress);
    clientOf.set(socket, client);
    const open: Open = [];
    const own = clients.get(client) ?? new Map<Socket, Open>();
    clients.set(client, own.set(socket, open));
    all.set(socket, open);
    socket.once('close', () => forget(socket));
    if (!isProxy(socket)) keepWithin(own, perClient);
    keepWithin(all, total);
  });
  server.on('request', (request: IncomingMessage, response: ServerResponse) => {
    const open = all.get(request.socket);
    if (!open) return;
    open.push(request);
    response.once('close', () => {
      // A list, because a Set makes new tables all the time, and dead ones keep what was in them for long.
      const last = open.pop();
      if (last !== undefined && last !== request) open[open.indexOf(request)] = last;
    });
    if (open.length > MOST_UNANSWERED) request.socket.destroy();
  });
  return () => {
    isEnding = true;
    for (const [socket, open] of all) if (open.length === 0) socket.destroy();
  };
}
