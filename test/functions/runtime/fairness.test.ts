import { createServer, type Server, type ServerResponse } from 'node:http';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { Hosts } from '../../../functions/delivery/hosts.ts';
import { NotNowError } from '../../../functions/effects.ts';
import { nextAttempt } from '../../../functions/rules/retries.ts';
import { eventually } from '../../support/eventually.ts';
import { reservePort } from '../../support/ports.ts';
import { runtimeForFile, sender } from './world.ts';

const world = runtimeForFile();
const held: ServerResponse[] = [];
let silent: Server;
let port = 0;
beforeAll(async () => {
  port = await reservePort();
  silent = createServer((_request, response) => void held.push(response));
  await new Promise<void>((resolve) => silent.listen(port, '127.0.0.1', resolve));
});
beforeEach(() => {
  world.arrivals.length = 0;
});
afterAll(async () => {
  silent.closeAllConnections();
  await new Promise((resolve) => silent.close(resolve));
});

const on = (event: string, url: string) =>
  sender(url, { filters: { events: [{ id: event, type: 'events' }] } });
const events = (event: string, count: number) =>
  Array.from({ length: count }, (_, id) => ({ event, properties: { id } }));

test('functions whose target never answers leave places for others, of their project and of other projects', async () => {
  const bob = await world.api.createTenant('Bob');
  const dead = `http://127.0.0.1:${port}/`;
  const hanging = [await world.create(on('a', dead)), await world.create(on('a', dead))];
  await world.create(on('b', world.url('works')));
  await world.create(on('b', world.url('works-too')), bob);
  await world.capture(events('a', 400));
  await eventually(async () => held.length >= 100);
  await world.capture(events('b', 60));
  await world.capture(events('b', 60), bob);
  // All of them arrive while every request to the silent server is still open.
  await eventually(async () => world.arrivals.filter(({ path }) => path === 'works').length === 60);
  await eventually(async () => world.arrivals.filter(({ path }) => path === 'works-too').length === 60);
  expect(held.filter((one) => !one.destroyed).length).toBeGreaterThan(0);
  for (const id of hanging) await world.change(id, { enabled: false });
  for (const one of held) one.end('{}');
  await world.idle();
});

test('a host that is left alone for one project is asked for another one', async () => {
  const bob = await world.api.createTenant('Bob');
  const nobody = `http://127.0.0.1:${await reservePort()}/`;
  const ids = [await world.create(on('nobody', nobody)), await world.create(on('nobody', nobody), bob)];
  const waiting = async (projectId: number, seconds: number) => {
    const { rows } = await world.api.pool.query(
      `select attempt from function_queue where project_id = $1 and lease is null
         and due_at > clock_timestamp() + $2 * interval '1 second' order by attempt limit 1`,
      [projectId, seconds],
    );
    return rows[0] as { attempt: number } | undefined;
  };
  await world.capture(events('nobody', 30));
  // After one attempt, the next one would follow sooner.
  await eventually(async () => ((await waiting(world.anna.projectId, 3))?.attempt ?? 9) <= 1);
  await world.capture(events('nobody', 1), bob);
  expect(await eventually(() => waiting(bob.projectId, 0))).toEqual({ attempt: 1 });
  await world.change(ids[0] as string, { enabled: false });
  await world.change(ids[1] as string, { enabled: false }, bob);
});

describe('a host', () => {
  const enter = (hosts: Hosts, count: number, now: number) =>
    Array.from({ length: count }, () => hosts.enter('dead', 'dead', now));
  const failing = (hosts: Hosts, count: number, now: number) => {
    for (let at = 0; at < count; at += 1) hosts.enter('dead', 'dead', now)(false, now);
  };
  /** How long it is left alone. 0: it may be asked. */
  const waitAt = (hosts: Hosts, now: number) => {
    try {
      hosts.enter('dead', 'dead', now);
    } catch (error) {
      if (error instanceof NotNowError) return error.milliseconds;
      throw error;
    }
    return 0;
  };

  test('that fails ten times is left alone, and one request finds out whether it is back', () => {
    const hosts = new Hosts(100);
    failing(hosts, 9, 0);
    const [tenth] = enter(hosts, 1, 0);
    tenth?.(false, 0);
    expect(waitAt(hosts, 0)).toBe(5_000);
    expect(waitAt(hosts, 4_000)).toBe(1_000);
    const [probe] = enter(hosts, 1, 5_000);
    expect(waitAt(hosts, 5_001)).toBe(5_000);
    probe?.(false, 6_000);
    expect(waitAt(hosts, 6_000)).toBe(10_000);
    const [next] = enter(hosts, 1, 16_000);
    next?.(true, 16_000);
    expect(waitAt(hosts, 16_000)).toBe(0);
    expect(waitAt(hosts, 16_000)).toBe(0);
  });

  test('is left alone for no longer because of what was under way when that began', () => {
    const hosts = new Hosts(100);
    const all = enter(hosts, 40, 0);
    for (const leave of all.slice(0, 39)) leave(false, 10_000);
    expect(waitAt(hosts, 10_000)).toBe(5_000);
    // The probe is still alone when the last of them has ended.
    const [probe] = enter(hosts, 1, 15_000);
    all.at(-1)?.(false, 15_001);
    expect(waitAt(hosts, 15_002)).toBe(5_000);
    probe?.(false, 25_000);
    expect(waitAt(hosts, 25_000)).toBe(10_000);
  });

  test('is back as soon as it answers anything', () => {
    const hosts = new Hosts(100);
    const [early] = enter(hosts, 1, 0);
    failing(hosts, 10, 0);
    expect(waitAt(hosts, 1_000)).toBe(4_000);
    early?.(true, 1_000);
    expect(waitAt(hosts, 1_000)).toBe(0);
  });

  test('that answers has ten failures before it again', () => {
    const hosts = new Hosts(100);
    failing(hosts, 9, 0);
    const [answered] = enter(hosts, 1, 0);
    answered?.(true, 0);
    failing(hosts, 9, 0);
    const [tenth] = enter(hosts, 1, 0);
    tenth?.(false, 0);
    expect(waitAt(hosts, 0)).toBe(5_000);
  });

  test('has only its part of the requests in flight', () => {
    const hosts = new Hosts(2);
    const [first] = enter(hosts, 2, 0);
    expect(waitAt(hosts, 0)).toBe(250);
    first?.(true, 0);
    expect(waitAt(hosts, 0)).toBe(0);
    expect(() => hosts.enter('other', 'other', 0)).not.toThrow();
  });
});

test('attempts follow quickly at first, then ever more slowly, and end after a day', () => {
  const after = (attempt: number, age = 0, retryAfter: number | null = null) =>
    nextAttempt({ attempt, age, retryAfter, random: 0.5 });
  expect([1, 2, 3, 4, 5].map((attempt) => after(attempt))).toEqual([1_500, 2_500, 30_000, 60_000, 120_000]);
  expect(after(12)).toBe(3_600_000);
  expect(after(12, 86_400_000 - 3_600_000)).toBe(3_600_000);
  expect(after(12, 86_400_000 - 3_599_999)).toBeNull();
  expect(after(1, 0, 600_000)).toBe(600_000);
  expect(after(4, 0, 10 * 86_400_000)).toBe(86_400_000);
});
