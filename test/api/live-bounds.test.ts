import { connect } from 'node:net';
import { describe, expect, test } from '@jest/globals';
import { apiForFile, tenantsForFile } from '../support/api.ts';
import { eventually } from '../support/eventually.ts';
import { named, streamsForFile } from '../support/live.ts';

const api = apiForFile({ SLUICE_REFUSALS_PER_MINUTE: '0' }, { liveBounds: { beat: 100 } });
const { Anna: anna } = tenantsForFile(api, 'Anna');
const { listen, store, beside } = streamsForFile(api);

/** A stream begins up to a second in the past, so each test listens to its own events. */
const only = (name: string) => ({ query: { where: `event like '${name}%'` } });
const numbered = (name: string, count: number, properties = {}) =>
  Array.from({ length: count }, (_, index) => ({ event: `${name} ${index}`, properties }));

describe('a client that is slow', () => {
  const LARGE = 20_000;
  const large = { large: 'x'.repeat(LARGE) };
  const BYTES = 4_000_000;
  const COUNT = 100;

  test('keeps nobody waiting, takes no more memory, and learns what it missed', () =>
    beside({ bounds: { bytes: BYTES, patience: 50 } }, async (host, metric) => {
      const waiting = () => metric('sluice_live_waiting_bytes');
      const [slow, fast] = [await listen(anna, only('slow'), host), await listen(anna, only('slow'), host)];
      slow.pause();
      let stored = 0;
      let most = 0;
      // The buffers of the system take the first ones.
      while ((await metric('sluice_live_events_skipped_total')) < COUNT && stored < 40 * COUNT) {
        await store(anna, ...numbered('slow', COUNT, large));
        stored += COUNT;
        await eventually(async () => {
          most = Math.max(most, await waiting());
          return fast.events().length === stored;
        });
      }
      expect(fast.skipped()).toBe(0);
      expect(most).toBeGreaterThan(BYTES / 2);
      // Its own events up to the bound, the last one of them, and what is on its way to the fast one.
      expect(most).toBeLessThan(BYTES + COUNT * 1.2 * LARGE);
      slow.resume();
      await eventually(async () => slow.events().length + slow.skipped() === stored);
      expect(slow.skipped()).toBeGreaterThanOrEqual(COUNT);
      await eventually(async () => (await waiting()) === 0);
      await store(anna, ...named('slow end'));
      await eventually(async () => slow.events().at(-1) === 'slow end');
    }));

  test('and takes nothing is disconnected', () =>
    beside({ bounds: { bytes: 100_000, patience: 0, beat: 20, stalled: 200 } }, async (host, metric) => {
      const { port } = new URL(host);
      const socket = connect(Number(port), '127.0.0.1');
      socket.on('error', () => undefined);
      socket.pause();
      socket.write(
        `GET /api/projects/${anna.projectId}/events/live/ HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${anna.key}\r\n\r\n`,
      );
      await eventually(async () => (await metric('sluice_live_listeners')) === 1);
      await eventually(async () => {
        await store(anna, ...numbered('stuck', COUNT, large));
        return (await metric('sluice_live_listeners')) === 0;
      });
      expect(await metric('sluice_live_waiting_bytes')).toBe(0);
      socket.destroy();
    }));

  test('misses no burst when it comes again: it has its own pace', async () => {
    const first = await listen(anna, only('burst'));
    await store(anna, ...named('burst'));
    await eventually(async () => first.events().length === 1);
    const lastId = first.lastId();
    await store(anna, ...numbered('burst', 200, { text: 'x'.repeat(2_000) }));
    await eventually(async () => first.events().length === 201);
    await beside({ bounds: { bytes: 10_000, patience: 0 } }, async (host) => {
      const again = await listen(anna, { ...only('burst'), lastId }, host);
      await eventually(async () => again.events().length + again.skipped() >= 200);
      expect([new Set(again.events()).size, again.skipped()]).toEqual([200, 0]);
    });
  });

  test('has each event of a burst if it takes them, although they are more than may wait', () =>
    beside({ bounds: { bytes: 10_000, patience: 60_000 } }, async (host) => {
      const stream = await listen(anna, only('rush'), host);
      await store(anna, ...numbered('rush', 200, { text: 'x'.repeat(2_000) }));
      await eventually(async () => stream.events().length + stream.skipped() >= 200);
      expect([new Set(stream.events()).size, stream.skipped()]).toEqual([200, 0]);
    }));

  test('gets no event for which all streams together have no room', () =>
    beside({ bounds: { bytes: 1_000, bytesOfAll: 10_000, patience: 0 } }, async (host, metric) => {
      const stream = await listen(anna, only('room'), host);
      await store(anna, { event: 'room 1' }, { event: 'room 2', properties: large }, { event: 'room 3' });
      await eventually(async () => stream.events().length + stream.skipped() === 3);
      expect([stream.events().toSorted(), stream.skipped()]).toEqual([['room 1', 'room 3'], 1]);
      expect(await metric('sluice_live_events_skipped_total')).toBe(1);
    }));
});

describe('events', () => {
  test('of a second that are too many are counted, and the filters of a project share them', () =>
    beside({ bounds: { eventsAtOnce: 100 } }, async (host, metric) => {
      const stream = await listen(anna, only('much'), host);
      await store(anna, ...numbered('much', 350));
      await eventually(async () => stream.skipped() > 0);
      expect([stream.events().length, stream.skipped()]).toEqual([100, 250]);
      expect(stream.messages.at(-1)).toMatchObject({ event: 'skipped', data: { events: 250, reason: null } });
      expect(await metric('sluice_live_events_skipped_total')).toBe(250);
      expect(await metric('sluice_live_events_total')).toBe(100);
      await store(anna, ...named('much more'));
      await eventually(async () => stream.events().at(-1) === 'much more');
      const other = await listen(anna, { query: { event: 'much of it' } }, host);
      await store(anna, ...Array.from({ length: 60 }, () => ({ event: 'much of it' })));
      await eventually(async () => other.events().length + other.skipped() === 60);
      expect([other.events().length, other.skipped()]).toEqual([50, 10]);
    }));

  test('of the past are so many, and so old', async () => {
    const first = await listen(anna, only('past'));
    await store(anna, ...named('past seen'));
    await eventually(async () => first.events().includes('past seen'));
    const lastId = first.messages.at(-1)?.id;
    await store(anna, ...numbered('past', 30));
    await eventually(async () => first.events().length === 31);
    const again = { ...only('past'), lastId };
    await beside({ bounds: { eventsOfPast: 10 } }, async (host) => {
      const stream = await listen(anna, again, host);
      await eventually(async () => stream.skipped() === 20);
      expect(stream.events()).toHaveLength(10);
    });
    await beside({ bounds: { past: 0 } }, async (host) => {
      const stream = await listen(anna, again, host);
      await eventually(async () => stream.messages.length > 0);
      expect(stream.messages[0]).toMatchObject({
        event: 'skipped',
        data: { events: null, reason: 'The place is older than 0 minutes.' },
      });
      await store(anna, ...named('past end'));
      await eventually(async () => stream.events().includes('past end'));
    });
  });

  test('of transactions that are larger than a page come once each, the first ones first', async () => {
    const first = await listen(anna, only('large'));
    await store(anna, ...named('large seen'));
    await eventually(async () => first.events().includes('large seen'));
    const lastId = first.lastId();
    for (const one of [1, 2, 3]) await store(anna, ...numbered(`large ${one}`, 700));
    await eventually(async () => first.events().length + first.skipped() === 2_101);
    await beside({ bounds: { eventsOfPast: 1_500 } }, async (host) => {
      const again = await listen(anna, { ...only('large'), lastId }, host);
      await eventually(async () => again.skipped() > 0);
      expect(again.skipped()).toBe(600);
      expect(new Set(again.events()).size).toBe(1_500);
      const of = (one: number) => again.events().filter((name) => name.startsWith(`large ${one} `)).length;
      expect([of(1), of(2), of(3)]).toEqual([700, 700, 100]);
    });
  });

  test('that a filter does not fit are left out with the reason, and other filters go on', async () => {
    const [broken, other] = [
      await listen(anna, { query: { where: "event like 'fit%' and toInt(properties.number) + 1 > 0" } }),
      await listen(anna, only('fit')),
    ];
    await store(anna, { event: 'fit', properties: { number: '9223372036854775807' } });
    await eventually(async () => other.events().length === 1 && broken.messages.length === 1);
    expect(broken.messages[0]).toMatchObject({
      event: 'skipped',
      data: { events: null, reason: 'A number is too large.' },
    });
    await store(anna, { event: 'fit', properties: { number: '1' } });
    await eventually(async () => broken.events().length === 1);
  });
});
