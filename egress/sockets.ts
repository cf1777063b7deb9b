import http from 'node:http';
import https from 'node:https';
import net from 'node:net';
import type { Duplex } from 'node:stream';
import { EgressRefusedError } from './egress-refused.ts';
import type { Guard } from './guard.ts';
import { limitConnecting } from './no-answer.ts';

type Connected = (error: Error | null, stream: Duplex) => void;
interface Target {
  host?: string;
  hostname?: string;
  path?: string | null;
  socketPath?: string;
}

/** Adds the guard to the options of a connection. An address needs no lookup, so it is checked here. */
function guarded<T extends Target>(guard: Guard, options: T): T {
  if (options.socketPath) throw new EgressRefusedError(options.socketPath, undefined, 'it is a local socket');
  guard.checkLiteral(options.host ?? options.hostname ?? 'localhost');
  return { ...options, lookup: guard.lookup };
}

/** Reports a refusal like a failed connection, because clients do not expect an exception here. */
function guardedConnection<T>(
  guard: Guard,
  options: T,
  callback: Connected | undefined,
  connect: (checked: T) => Duplex | null | undefined,
): Duplex | null | undefined {
  let checked: T;
  try {
    checked = guarded(guard, options as Target) as T;
  } catch (error) {
    if (!callback) throw error;
    process.nextTick(callback, error);
    return undefined;
  }
  return connect(checked);
}

const placeOf = ({ host, hostname, port }: { host?: unknown; hostname?: unknown; port?: unknown }) =>
  `${host ?? hostname ?? 'localhost'}:${port}`;

class GuardedHttpAgent extends http.Agent {
  readonly #guard: Guard;
  readonly #connectMilliseconds: number;
  constructor(guard: Guard, connectMilliseconds: number, options: http.AgentOptions) {
    super(options);
    this.#guard = guard;
    this.#connectMilliseconds = connectMilliseconds;
  }
  override createConnection(
    options: http.ClientRequestArgs,
    callback?: Connected,
  ): Duplex | null | undefined {
    return guardedConnection(this.#guard, options, callback, (checked) => {
      const socket = super.createConnection(checked, callback);
      if (socket) limitConnecting(socket, 'connect', placeOf(checked), this.#connectMilliseconds);
      return socket;
    });
  }
}

class GuardedHttpsAgent extends https.Agent {
  readonly #guard: Guard;
  readonly #connectMilliseconds: number;
  constructor(guard: Guard, connectMilliseconds: number, options: https.AgentOptions) {
    super(options);
    this.#guard = guard;
    this.#connectMilliseconds = connectMilliseconds;
  }
  override createConnection(options: https.RequestOptions, callback?: Connected): Duplex | null | undefined {
    return guardedConnection(this.#guard, options, callback, (checked) => {
      const socket = super.createConnection(checked, callback);
      if (socket) limitConnecting(socket, 'secureConnect', placeOf(checked), this.#connectMilliseconds);
      return socket;
    });
  }
}

export interface AgentPair {
  httpAgent: http.Agent;
  httpsAgent: https.Agent;
  /** Closes the connections that are kept open. */
  destroy(): void;
}

/** Creates agents for clients that are built on node:http, such as the S3 SDK. */
export function guardedAgents(guard: Guard, maxSockets: number, connectMilliseconds: number): AgentPair {
  const options = { keepAlive: true, maxSockets };
  const httpAgent = new GuardedHttpAgent(guard, connectMilliseconds, options);
  const httpsAgent = new GuardedHttpsAgent(guard, connectMilliseconds, options);
  return {
    httpAgent,
    httpsAgent,
    destroy() {
      httpAgent.destroy();
      httpsAgent.destroy();
    },
  };
}

/** A socket for clients that connect it themselves (`connect(port, host)`), such as pg. */
export class GuardedSocket extends net.Socket {
  readonly #guard: Guard;
  readonly #connectMilliseconds: number;
  constructor(guard: Guard, connectMilliseconds: number) {
    super();
    this.#guard = guard;
    this.#connectMilliseconds = connectMilliseconds;
  }
  override connect(...parts: unknown[]): this {
    const [first, second] = parts;
    const target: net.TcpNetConnectOpts | { path: string } =
      typeof first === 'object' && first !== null
        ? (first as net.TcpNetConnectOpts)
        : typeof first === 'number' || /^\d+$/.test(String(first))
          ? { port: Number(first), host: typeof second === 'string' ? second : 'localhost' }
          : { path: String(first) };
    const listener = parts.find((part) => typeof part === 'function') as (() => void) | undefined;
    try {
      if (!('port' in target) || ('path' in target && target.path)) {
        const path = (target as { path: string }).path;
        throw new EgressRefusedError(path, undefined, 'it is a local socket');
      }
      const options = guarded(this.#guard, { host: 'localhost', ...target });
      limitConnecting(this, 'connect', placeOf(options), this.#connectMilliseconds);
      return super.connect(options as net.TcpNetConnectOpts, listener);
    } catch (error) {
      // The refusal is reported like a failed connection, as an `error` event.
      this.destroy(error as Error);
      return this;
    }
  }
}
