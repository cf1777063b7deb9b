import type { Socket } from 'node:net';
import { parseAllowList } from './allow-list.ts';
import { type FetchAnswer, type FetchOptions, guardedDispatcher, guardedFetch } from './fetch.ts';
import { createGuard, type Resolve } from './guard.ts';
import { CONNECT_MILLISECONDS } from './no-answer.ts';
import { type AgentPair, GuardedSocket, guardedAgents } from './sockets.ts';

export interface EgressOptions {
  /** SLUICE_EGRESS_ALLOW: a comma-separated list of private hosts and CIDRs that are allowed. */
  allow?: string;
  resolve?: Resolve;
  /** How long a connection may take until it is ready, with TLS, in milliseconds. */
  connectMilliseconds?: number;
  /** How long a connection of `fetch` may be silent while a request is under way, in milliseconds. */
  idleMilliseconds?: number;
}

/** Large bodies have no limit that everybody could know, so a connection on which nothing moves is closed. */
const IDLE_MILLISECONDS = 20_000;

/** Makes all connections to addresses that users choose. It refuses private addresses. */
export interface Egress {
  fetch(url: string | URL, options?: FetchOptions): Promise<FetchAnswer>;
  /** Returns agents for clients built on node:http. The caller must destroy them. */
  agents(maxSockets?: number): AgentPair;
  /**
   * Returns a socket for clients that connect it themselves. With `listedOnly`, it only reaches what
   * SLUICE_EGRESS_ALLOW lists.
   */
  socket(options?: { listedOnly?: boolean }): Socket;
  /** Closes the connections that fetch keeps open. */
  close(): Promise<void>;
}

export function createEgress(options: EgressOptions = {}): Egress {
  const guard = createGuard(parseAllowList(options.allow ?? ''), options.resolve);
  const { connectMilliseconds: connect = CONNECT_MILLISECONDS, idleMilliseconds: idle = IDLE_MILLISECONDS } =
    options;
  const dispatcher = guardedDispatcher(guard, { connect, idle });
  return {
    fetch: (url, request) => guardedFetch(dispatcher, url, request),
    agents: (maxSockets = 16) => guardedAgents(guard, maxSockets, connect),
    socket: ({ listedOnly = false } = {}) =>
      new GuardedSocket(listedOnly ? guard.listedOnly : guard, connect),
    close: () => dispatcher.destroy(),
  };
}
