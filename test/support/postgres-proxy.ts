import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import net, { type AddressInfo } from 'node:net';
import path from 'node:path';
import tls from 'node:tls';

export interface PostgresProxyOptions {
  /** The port of the server behind. */
  behind: number;
  tls?: boolean;
  /**
   * Asked before each piece that a client sends, with the number of its bytes so far: `cut` ends the connection,
   * `last` does so when the server has done what the piece says, without its answer; a promise holds the piece until
   * it is kept. `name` is what the connection is called in pg_stat_activity.
   */
  watch?(piece: Buffer, bytes: number, name: string): 'cut' | 'last' | Promise<unknown> | undefined;
  /** The same of what the server answers, with the number of bytes since the client last said something. */
  hold?(bytes: number, name: string): Promise<unknown> | undefined;
}

/** The name that a client gives itself in its first message. */
const nameIn = (first: Buffer): string =>
  /application_name\0([^\0]*)/.exec(first.toString('latin1'))?.[1] ?? '';

/** A server between the client and Postgres that can speak TLS, and do harm. */
export async function startPostgresProxy(
  options: PostgresProxyOptions,
): Promise<{ port: number; close(): Promise<void> }> {
  const fixtures = path.resolve(import.meta.dirname, '../fixtures/tls');
  const secureContext = tls.createSecureContext({
    key: readFileSync(path.join(fixtures, 'server.key')),
    cert: readFileSync(path.join(fixtures, 'server.pem')),
  });
  const sockets = new Set<net.Socket>();
  const server = net.createServer((raw) => {
    sockets.add(raw);
    raw.on('error', () => undefined);
    raw.once('data', (first) => {
      raw.pause();
      let name = nameIn(first);
      const isTlsRequest = first.length === 8 && first.readInt32BE(4) === 80877103;
      if (isTlsRequest) raw.write(options.tls ? 'S' : 'N');
      const stream = options.tls ? new tls.TLSSocket(raw, { isServer: true, secureContext }) : raw;
      const onward = net.connect(options.behind, '127.0.0.1');
      sockets.add(onward);
      for (const one of [stream, onward]) one.on('error', () => undefined);
      onward.on('close', () => raw.destroy());
      raw.on('close', () => onward.destroy());
      if (!isTlsRequest) onward.write(first);
      let bytes = 0;
      let answered = 0;
      let isDeaf = false;
      stream.on('data', (piece: Buffer) => {
        if (bytes === 0 && isTlsRequest) name = nameIn(piece);
        bytes += piece.length;
        answered = 0;
        const harm = options.watch?.(piece, bytes, name);
        if (harm === 'cut') {
          raw.destroy();
        } else if (harm === 'last') {
          isDeaf = true;
          onward.end(piece);
        } else if (harm) {
          stream.pause();
          void harm.then(() => onward.write(piece, () => stream.resume()));
        } else if (!onward.write(piece)) {
          stream.pause();
          onward.once('drain', () => stream.resume());
        }
      });
      onward.on('data', (piece: Buffer) => {
        answered += piece.length;
        const held = options.hold?.(answered, name);
        if (held) {
          onward.pause();
          void held.then(() => stream.write(piece, () => onward.resume()));
        } else if (!isDeaf && !stream.write(piece)) {
          onward.pause();
          stream.once('drain', () => onward.resume());
        }
      });
      raw.resume();
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    async close() {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
