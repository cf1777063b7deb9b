import { once } from 'node:events';
import http from 'node:http';
import net, { type AddressInfo } from 'node:net';
import { CreateBucketCommand, S3Client } from '@aws-sdk/client-s3';
import { startPostgresProxy } from '../../test/support/postgres-proxy.ts';
import { postgresSettings } from '../../test/support/postgres-settings.ts';
import { CREDENTIALS, startVersitygw } from '../../test/support/versitygw-server.ts';

/** A destination that takes the connection and never takes the rows. */
export interface DeadDestination {
  /** How it fails, in the words of the report. */
  how: string;
  type: string;
  /** The configuration of the n-th export to it. */
  config(n: number): Record<string, unknown>;
}

export interface DeadDestinations {
  kinds: DeadDestination[];
  close(): Promise<void>;
}

const SECOND = 1_000;

async function listen(server: net.Server): Promise<number> {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return (server.address() as AddressInfo).port;
}

/** Starts the servers that the dead exports write to. `postgresUrl` is a real server, behind one that falls silent. */
export async function startDeadDestinations(postgresUrl: string): Promise<DeadDestinations> {
  const sockets = new Set<net.Socket>();
  const servers: net.Server[] = [];
  const keep = <T extends net.Server>(server: T): T => {
    servers.push(server);
    server.on('connection', (socket: net.Socket) => {
      sockets.add(socket);
      socket.on('error', () => undefined);
      socket.on('close', () => sockets.delete(socket));
    });
    return server;
  };
  const serving = (onSocket: (socket: net.Socket) => void) => listen(keep(net.createServer(onSocket)));

  const never = await serving((socket) => socket.resume());
  // The handshake begins, and a byte of a record that is as long as records may be comes every second.
  const tlsTrickle = await serving((socket) => {
    socket.resume();
    socket.write(Buffer.from([22, 3, 3, 64, 0]));
    const timer = setInterval(() => socket.write(Buffer.from([2])), SECOND);
    socket.on('close', () => clearInterval(timer));
  });
  const trickle = await listen(
    keep(
      http.createServer((request, response) => {
        request.resume();
        response.writeHead(200, { 'content-type': 'application/json' });
        const timer = setInterval(() => response.write(' '), SECOND);
        response.on('close', () => clearInterval(timer));
      }),
    ),
  );
  const postgresTls = await serving((socket) => void socket.once('data', () => socket.write('S')));

  const proxy = await startPostgresProxy({
    behind: Number(new URL(postgresUrl).port),
    watch: (piece) =>
      piece.toString('latin1').includes('commit\0') ? new Promise(() => undefined) : undefined,
  });

  const probe = net.createServer();
  const s3Port = await listen(probe);
  await new Promise((resolve) => probe.close(resolve));
  const s3 = await startVersitygw(s3Port);
  // It answers what is read. What is written is taken, and gets no answer.
  const s3Writes = await listen(
    keep(
      http.createServer((request, response) => {
        if (request.method === 'PUT' || request.method === 'POST') {
          request.resume();
          return;
        }
        const { method = 'GET', url = '/', headers } = request;
        const onward = http.request(
          { port: s3Port, host: '127.0.0.1', method, path: url, headers },
          (answer) => {
            response.writeHead(answer.statusCode ?? 500, answer.headers);
            answer.pipe(response);
          },
        );
        onward.on('error', () => response.destroy());
        request.pipe(onward);
      }),
    ),
  );
  const client = new S3Client({
    endpoint: s3.endpoint,
    region: 'us-east-1',
    forcePathStyle: true,
    credentials: CREDENTIALS,
  });
  await client.send(new CreateBucketCommand({ Bucket: 'dead' }));
  client.destroy();

  const httpAt = (url: string) => () => ({ url, token: 'phc_dead' });
  const s3At = (endpoint: string) => (n: number) => ({
    ...{ bucket_name: 'dead', region: 'us-east-1', prefix: `export-${n}`, endpoint_url: endpoint },
    ...{ aws_access_key_id: CREDENTIALS.accessKeyId, aws_secret_access_key: CREDENTIALS.secretAccessKey },
  });
  const postgresAt = (port: number) => (n: number) => ({
    ...postgresSettings(postgresUrl, `dead_${n}`),
    ...{ host: '127.0.0.1', port },
  });
  return {
    kinds: [
      { how: 'HTTP that never finishes TLS', type: 'HTTP', config: httpAt(`https://127.0.0.1:${never}/`) },
      { how: 'HTTP whose TLS trickles', type: 'HTTP', config: httpAt(`https://127.0.0.1:${tlsTrickle}/`) },
      { how: 'HTTP whose answer trickles', type: 'HTTP', config: httpAt(`http://127.0.0.1:${trickle}/`) },
      { how: 'S3 that never answers', type: 'S3', config: s3At(`http://127.0.0.1:${never}`) },
      {
        how: 'S3 that falls silent at the first write',
        type: 'S3',
        config: s3At(`http://127.0.0.1:${s3Writes}`),
      },
      { how: 'S3 whose answers trickle', type: 'S3', config: s3At(`http://127.0.0.1:${trickle}`) },
      { how: 'Postgres that never finishes TLS', type: 'Postgres', config: postgresAt(postgresTls) },
      { how: 'Postgres that falls silent at the commit', type: 'Postgres', config: postgresAt(proxy.port) },
    ],
    async close() {
      for (const socket of sockets) socket.destroy();
      await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))));
      await proxy.close();
      await s3.stop();
    },
  };
}
