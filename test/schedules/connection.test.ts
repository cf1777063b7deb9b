import { readFileSync } from 'node:fs';
import net from 'node:net';
import path from 'node:path';
import tls from 'node:tls';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { Connection } from '@temporalio/client';
import { NativeConnection } from '@temporalio/worker';
import { loadConfig } from '../../config.ts';
import { connectionSettings } from '../../schedules/connection.ts';

const certificates = path.resolve(import.meta.dirname, '../fixtures/tls');
const certificate = (name: string) => path.join(certificates, name);
const pem = (name: string) => readFileSync(certificate(name));

/** Stands before the real Temporal and lets in only who shows a certificate of the test authority. */
let door: tls.Server;
let address: string;
const sockets = new Set<net.Socket>();

beforeAll(async () => {
  const [host, port] = (process.env.TEST_TEMPORAL_ADDRESS as string).split(':');
  door = tls.createServer(
    {
      cert: pem('server.pem'),
      key: pem('server.key'),
      ca: pem('ca.pem'),
      requestCert: true,
      rejectUnauthorized: true,
      ALPNProtocols: ['h2'],
    },
    (secure) => {
      const plain = net.connect(Number(port), host);
      for (const socket of [secure, plain]) {
        sockets.add(socket);
        socket.on('error', () => undefined);
      }
      secure.pipe(plain).pipe(secure);
    },
  );
  door.on('tlsClientError', () => undefined);
  await new Promise<void>((resolve) => door.listen(0, '127.0.0.1', resolve));
  address = `localhost:${(door.address() as net.AddressInfo).port}`;
});

afterAll(async () => {
  for (const socket of sockets) socket.destroy();
  await new Promise((resolve) => door.close(resolve));
});

const mutual = () => ({
  TEMPORAL_ADDRESS: address,
  TEMPORAL_TLS_CERT: certificate('client.pem'),
  TEMPORAL_TLS_KEY: certificate('client.key'),
  TEMPORAL_TLS_CA: certificate('ca.pem'),
});

describe('the connection to Temporal', () => {
  test('is made with mutual TLS, by the client and by the worker', async () => {
    const settings = connectionSettings(loadConfig(mutual()));
    const client = await Connection.connect({ ...settings, connectTimeout: '20 seconds' });
    const info = await client.workflowService.getSystemInfo({});
    await client.close();
    expect(info.serverVersion).toMatch(/^\d+\.\d+/);
    const worker = await NativeConnection.connect(settings);
    await worker.close();
  });

  test('is refused without the certificate', async () => {
    const settings = connectionSettings(
      loadConfig({ TEMPORAL_ADDRESS: address, TEMPORAL_TLS_CA: certificate('ca.pem') }),
    );
    await expect(Connection.connect({ ...settings, connectTimeout: '2 seconds' })).rejects.toThrow();
  });

  test('an API key switches TLS on and is handed over', () => {
    const settings = connectionSettings(
      loadConfig({ TEMPORAL_ADDRESS: 'cloud.test:7233', TEMPORAL_API_KEY: 'secret' }),
    );
    expect(settings).toEqual({ address: 'cloud.test:7233', tls: true, apiKey: 'secret' });
  });

  test.each([
    [{}, /^TEMPORAL_ADDRESS is not set\./],
    [
      { TEMPORAL_ADDRESS: 'a:1', TEMPORAL_TLS_CERT: '/x' },
      /TEMPORAL_TLS_CERT and TEMPORAL_TLS_KEY go together/,
    ],
    [
      { TEMPORAL_ADDRESS: 'a:1', TEMPORAL_TLS_CA: '/no/such/file' },
      /^TEMPORAL_TLS_CA: the file \/no\/such\/file cannot be read/,
    ],
  ])('says what is wrong with %j', (env, message) => {
    expect(() => connectionSettings(loadConfig(env))).toThrow(message);
  });
});
