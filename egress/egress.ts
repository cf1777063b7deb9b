import type { Socket } from 'node:net';
import { parseAllowList } from './allow-list.ts';
import { type FetchAnswer, type FetchOptions, guardedDispatcher, guardedFetch } from './fetch.ts';
import { createGuard, type Resolve } from './guard.ts';
import { type AgentPair, GuardedSocket, guardedAgents } from './sockets.ts';

export interface EgressOptions {
  /** SLUICE_EGRESS_ALLOW: a comma-separated list of private hosts and CIDRs that are allowed. */
  allow?: string;
  resolve?: Resolve;
}

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
  const dispatcher = guardedDispatcher(guard);
  return {
    fetch: (url, request) => guardedFetch(dispatcher, url, request),
    agents: (maxSockets = 16) => guardedAgents(guard, maxSockets),
    socket: ({ listedOnly = false } = {}) => new GuardedSocket(listedOnly ? guard.listedOnly : guard),
    close: () => dispatcher.destroy(),
  };
}
