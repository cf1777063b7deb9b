import type { Socket } from 'node:net';
import { parseAllowList } from './allow-list.ts';
import { type FetchAnswer, type FetchOptions, guardedDispatcher, guardedFetch } from './fetch.ts';
import { createGuard, type Resolve } from './guard.ts';
import { type AgentPair, GuardedSocket, guardedAgents } from './sockets.ts';

export interface EgressOptions {
  /** SLUICE_EGRESS_ALLOW: private hosts and CIDRs, comma-separated, that may be reached nevertheless. */
  allow?: string;
  resolve?: Resolve;
}

/** The one way out: whatever Sluice connects to because a user said so, it connects to through here. */
export interface Egress {
  fetch(url: string | URL, options?: FetchOptions): Promise<FetchAnswer>;
  /** For clients built on node:http; the caller destroys them. */
  agents(maxSockets?: number): AgentPair;
  /** For clients that connect a socket themselves. `listedOnly` reaches what SLUICE_EGRESS_ALLOW names, nothing else. */
  socket(options?: { listedOnly?: boolean }): Socket;
  /** Ends the connections that fetch keeps open. */
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
