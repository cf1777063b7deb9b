import { once } from 'node:events';
import net, { type AddressInfo } from 'node:net';
import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import type { RawConfig } from '../../destinations/config.ts';
import type { Surroundings } from '../../destinations/destination.ts';
import { runTestStep } from '../../destinations/settings.ts';
import { createEgress } from '../../egress/egress.ts';
import { databaseForFile } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import { type PostgresProxyOptions, startPostgresProxy } from '../support/postgres-proxy.ts';
import { postgresSettings } from '../support/postgres-settings.ts';
import { deliver, failureOf } from './harness.ts';
import { sampleEvents } from './sample.ts';

// Servers that take a connection and at some point say nothing more.

const database = databaseForFile();
let surroundings: Surroundings;
let tables = 0;
let waits: string[] = [];
const stops: (() => unknown)[] = [];
const answer = 1_000;

beforeAll(() => {
  surroundings = {
    egress: createEgress({ allow: '127.0.0.1' }),
    exportRoot: '/nowhere',
    limits: { answer },
    // Whoever waits in an attempt would wait for ever.
    patience: { attempts: 1_000_000, delay: () => 1 },
  };
});
afterEach(async () => {
  for (const stop of stops.splice(0)) await stop();
  waits = [];
});
afterAll(() => surroundings.egress.close());

function configOf(port?: number): RawConfig {
  tables += 1;
  const config = postgresSettings(database.url, `silent_${tables}`);
  return { ...config, ...(port === undefined ? {} : { port }) };
}

/** What is sent to a server that answers, whatever else the machine does. */
const patient = () => ({ ...surroundings, limits: {} });

const send = (config: RawConfig, events = sampleEvents(20), around = surroundings) =>
  deliver({
    ...{ type: 'Postgres', config, surroundings: around, events },
    onWait: (what) => {
      waits.push(what);
      return () => undefined;
    },
  });

const count = async ({ table_name: name }: RawConfig) => {
  const { rows } = await database.pool.query(`select count(*)::int as count from ${name}`);
  return rows[0].count;
};

/** A server of a few lines, and how often somebody connected. */
async function serve(talk: (socket: net.Socket) => void): Promise<{ port: number; connections(): number }> {
  const sockets = new Set<net.Socket>();
  let connections = 0;
  const server = net.createServer((socket) => {
    connections += 1;
    sockets.add(socket);
    socket.on('error', () => undefined);
    talk(socket);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  stops.push(() => {
    for (const socket of sockets) socket.destroy();
    return new Promise((resolve) => server.close(resolve));
  });
  return { port: (server.address() as AddressInfo).port, connections: () => connections };
}

/** Sends the bytes one by one. */
function trickle(socket: net.Socket, bytes: Buffer): void {
  let at = 0;
  const timer = setInterval(() => socket.write(bytes.subarray(at, ++at)), 10);
  socket.on('close', () => clearInterval(timer));
}

const LONG_MESSAGE = Buffer.concat([Buffer.from('R'), Buffer.from([0, 0, 64, 0]), Buffer.alloc(16_380)]);

describe('a server that does not let anybody in', () => {
  test.each<[string, (socket: net.Socket) => void]>([
    ['never answers', () => undefined],
    ['promises TLS and never begins', (socket) => socket.once('data', () => socket.write('S'))],
    [
      'trickles its TLS handshake',
      (socket) =>
        socket.once('data', () => {
          socket.write('S');
          trickle(socket, Buffer.concat([Buffer.from('1603034000', 'hex'), Buffer.alloc(16_384, 2)]));
        }),
    ],
    [
      'trickles its question for the password',
      (socket) =>
        socket.once('data', (asked) => {
          if (asked.length === 8) socket.write('N');
          else trickle(socket, LONG_MESSAGE);
          socket.once('data', () => trickle(socket, LONG_MESSAGE));
        }),
    ],
  ])('and %s: the attempt ends, and says where', async (_what, talk) => {
    const { port, connections } = await serve(talk);
    const config = configOf(port);
    const said = `cannot connect to 127.0.0.1:${port}: no answer within 1 second`;
    const failed = await failureOf(send(config));
    expect(failed).toMatchObject({ code: 'timed-out', retryable: true });
    expect(failed.message).toBe(
      `Postgres at 127.0.0.1:${port}, table "public.${config.table_name}": ${said}`,
    );
    // The waiting is for the retries of the run, outside.
    expect(connections()).toBeLessThanOrEqual(2);
    const step = await runTestStep({ type: 'Postgres', config }, 0, surroundings);
    expect(step?.result).toEqual({ status: 'Failed', message: expect.stringContaining(said) });
  });

  test('nobody listens: the attempt ends after one try', async () => {
    const { port } = await serve(() => undefined);
    await stops.pop()?.();
    expect(await failureOf(send(configOf(port)))).toMatchObject({ code: 'unreachable' });
  });
});

/** The server of the tests, with something in front of it. */
async function between(options: Omit<PostgresProxyOptions, 'behind'>): Promise<RawConfig> {
  const proxy = await startPostgresProxy({ ...options, behind: Number(new URL(database.url).port) });
  stops.push(proxy.close);
  return configOf(proxy.port);
}
const never = new Promise(() => undefined);

describe('a server that falls silent', () => {
  test.each([
    ['at the first question', /pg_class/],
    ['when the transaction begins', /statement_timeout/],
    ['when the rows come', /copy "public"/],
    ['at the commit', /^Q....commit\0$/s],
  ])('%s: the attempt ends, and nothing is there', async (_when, asked) => {
    await send(await between({}), [], patient());
    const config = await between({
      watch: (piece) => (asked.test(piece.toString('latin1')) ? never : undefined),
    });
    await database.pool.query(`create table ${config.table_name} (uuid text primary key)`);
    expect(await failureOf(send(config))).toMatchObject({ code: 'timed-out', retryable: true });
    await eventually(async () => (await count(config)) === 0);
  });

  test('after it has committed: the attempt ends, and the next one finds the rows', async () => {
    let isSilent = false;
    const config = await between({
      watch: (piece) => {
        isSilent ||= piece.toString('latin1').includes('commit\0');
        return undefined;
      },
      hold: () => (isSilent ? never : undefined),
    });
    await database.pool.query(`create table ${config.table_name} (uuid text primary key)`);
    const failed = await failureOf(send(config));
    expect(failed).toMatchObject({ code: 'timed-out', retryable: true });
    const direct = { ...config, port: Number(new URL(database.url).port) };
    expect(await count(config)).toBe(20);
    expect(await send(direct, undefined, patient())).toMatchObject({ rows: 20, written: 0 });
  });

  test('the attempt says what it waits for', async () => {
    const config = await between({
      watch: (piece) => (piece.toString('latin1').includes('commit\0') ? never : undefined),
    });
    await database.pool.query(`create table ${config.table_name} (uuid text primary key)`);
    const failed = await failureOf(send(config));
    const place = `Postgres at 127.0.0.1:${config.port}, table "public.${config.table_name}"`;
    expect(waits.at(-1)).toBe(`${place} to commit`);
    expect(failed.message).toBe(
      `${place}: the server fell silent: it was to commit, and does nothing any more`,
    );
  });
});

describe('a server that works', () => {
  const slow = (name: unknown, when: string) => `
    create function ${name}_slow() returns trigger language plpgsql as
      $$ begin perform pg_sleep(${(3.5 * answer) / 1000}); return null; end $$;
    create ${when}`;

  test('is waited for: a slow commit, a slow end of the rows', async () => {
    for (const when of [
      'constraint trigger slow after insert on TABLE deferrable initially deferred for each row',
      'trigger slow after insert on TABLE for each statement',
    ]) {
      const config = configOf();
      const name = config.table_name as string;
      await database.pool.query(
        `create table ${name} (uuid text primary key);
         ${slow(name, when.replace('TABLE', name))} execute function ${name}_slow()`,
      );
      expect(await send(config, sampleEvents(1))).toMatchObject({ written: 1 });
    }
  });

  test('a lock of somebody else is waited for', async () => {
    const config = configOf();
    const name = config.table_name as string;
    await database.pool.query(`create table ${name} (uuid text primary key)`);
    const blocker = await database.pool.connect();
    try {
      await blocker.query(`begin; lock table ${name}`);
      const work = send(config);
      // Longer than any answer may take: several times it was asked whether the server works.
      await eventually(async () => {
        const { rows } = await database.pool.query(
          `select from pg_stat_activity where datname = current_database() and application_name = 'sluice-export'
             and wait_event_type = 'Lock' and now() - state_change > $1 * interval '1 millisecond'`,
          [4 * answer],
        );
        return rows.length === 1;
      });
      await blocker.query('rollback');
      expect(await work).toMatchObject({ written: 20 });
    } finally {
      blocker.release();
    }
  });
});
