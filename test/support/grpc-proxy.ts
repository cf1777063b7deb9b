import { once } from 'node:events';
import http2 from 'node:http2';
import type { AddressInfo } from 'node:net';
import { beforeAll } from '@jest/globals';

/** What becomes of a call: it is passed on, refused with a status of gRPC, or never answered. */
export type Fate = 'pass' | 'hang' | { code: number; message: string };

export interface GrpcProxy {
  /** Decides by the path of a call, such as `/temporal.api.workflowservice.v1.WorkflowService/GetSystemInfo`. */
  fate: (path: string) => Fate;
  /** The paths of the calls that were refused. */
  refused: string[];
  /** The address of the proxy, as `host:port`. */
  address: string;
}

const PERMISSION_DENIED = 7;

/** Refuses calls whose path contains one of these texts, in the words of a Temporal whose authorizer does. */
export const denies =
  (...parts: string[]): GrpcProxy['fate'] =>
  (path) =>
    parts.some((part) => path.includes(part))
      ? { code: PERMISSION_DENIED, message: 'Request unauthorized.' }
      : 'pass';

/** Stands before a gRPC server and passes on the frames of each call, with headers and trailers, in both directions. */
export async function startGrpcProxy(
  behind: string,
  fate: GrpcProxy['fate'] = () => 'pass',
  proxy = {} as GrpcProxy & { close(): Promise<void> },
): Promise<GrpcProxy & { close(): Promise<void> }> {
  /** Each connection has one of its own to the server, and ends with it: servers end connections that grow old. */
  const sessions = new Map<http2.Http2Session, http2.ClientHttp2Session>();
  const server = http2.createServer();
  Object.assign(proxy, {
    fate,
    refused: [],
    async close() {
      for (const session of sessions.keys()) session.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  });
  server.on('session', (session) => {
    const onward = http2.connect(`http://${behind}`);
    sessions.set(session, onward);
    session.on('error', () => undefined);
    session.on('close', () => {
      sessions.delete(session);
      onward.destroy();
    });
    onward.on('error', () => undefined);
    onward.on('goaway', () => session.close());
    onward.on('close', () => session.destroy());
  });
  server.on('stream', (stream, headers) => {
    stream.on('error', () => undefined);
    const path = headers[':path'] as string;
    const fate = proxy.fate(path);
    if (fate === 'hang') return;
    if (fate !== 'pass') {
      proxy.refused.push(path);
      const told = { 'grpc-status': String(fate.code), 'grpc-message': encodeURIComponent(fate.message) };
      stream.respond({ ':status': 200, 'content-type': 'application/grpc', ...told }, { endStream: true });
      return;
    }
    const onward = stream.session && sessions.get(stream.session);
    if (!onward || onward.closed || onward.destroyed) stream.close(http2.constants.NGHTTP2_REFUSED_STREAM);
    else pass(stream, onward.request(headers));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  proxy.address = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  return proxy;
}

function pass(from: http2.ServerHttp2Stream, to: http2.ClientHttp2Stream): void {
  let trailers: http2.IncomingHttpHeaders = {};
  to.on('error', () => from.destroy());
  from.on('close', () => to.close(http2.constants.NGHTTP2_CANCEL));
  to.on('trailers', (received) => {
    trailers = received;
  });
  to.on('response', (headers, flags) => {
    if (from.destroyed) return;
    // Where the server fails at once, its headers are its trailers.
    if (flags & http2.constants.NGHTTP2_FLAG_END_STREAM) from.respond(headers, { endStream: true });
    else {
      from.respond(headers, { waitForTrailers: true });
      from.on('wantTrailers', () => from.sendTrailers(trailers));
      to.pipe(from);
    }
  });
  from.pipe(to);
}

/**
 * A proxy before the Temporal of the run, for the tests of one file. The file closes it when its own things are closed:
 * hooks run in the order of their definition.
 */
export function grpcProxyForFile(
  fate: GrpcProxy['fate'] = () => 'pass',
): GrpcProxy & { close(): Promise<void> } {
  const proxy = {} as Awaited<ReturnType<typeof startGrpcProxy>>;
  beforeAll(async () => {
    await startGrpcProxy(process.env.TEST_TEMPORAL_ADDRESS as string, fate, proxy);
  });
  return proxy;
}
