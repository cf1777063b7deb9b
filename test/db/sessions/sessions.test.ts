import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { databaseForFile } from '../../support/database.ts';
import { insertEvents } from '../../support/rows.ts';
import {
  CLICK_IDS,
  type ModelEvent,
  type ModelSession,
  modelAll,
  modelBegun,
  modelChanged,
  modelSession,
} from './model.ts';
import {
  findSession,
  listSessionsBegun,
  listSessionsChanged,
  type SessionRow,
  type Stretch,
} from './readers.ts';

const database = databaseForFile();
const SEED = 20_261_121;
const HOUR = 3_600_000;
const BASE = Date.UTC(2026, 10, 10, 9);
const iso = (milliseconds: number) => new Date(milliseconds).toISOString();

/** A uuid of version 7 that was made then. */
const madeAt = (milliseconds: number, n: number) => {
  const hex = milliseconds.toString(16).padStart(12, '0');
  return `${hex.slice(0, 8)}-${hex.slice(8)}-7abc-8def-${String(n).padStart(12, '0')}`;
};
const IDS = [
  madeAt(BASE, 1),
  madeAt(BASE + 5 * HOUR, 2),
  madeAt(BASE - 40 * HOUR, 3),
  madeAt(BASE, 4).toUpperCase(),
  'my-session',
  '12345',
  // Of version 4: it does not tell its time.
  'd9b2d63d-a233-4123-847a-7090ab3d0d9e',
];

const url = fc.constantFrom(
  'https://example.com/',
  'https://example.com/pricing?utm_source=x#top',
  'https://www.example.com/a/b',
  'http://shop.example.com:8080',
  'about:blank',
  '',
  null,
  7,
);
const word = (...words: unknown[]) => fc.option(fc.constantFrom(...words), { nil: undefined, freq: 2 });
const properties = fc.record(
  {
    $current_url: url,
    $external_click_url: word('https://other.example/', 'https://elsewhere.example/', '', null),
    $web_vitals_LCP_value: word(1200.5, '980', 'slow', null, 0),
    $referring_domain: word('www.google.com', '$direct', 'example.com', 't.co', 'blog.example.org', ''),
    $referrer: word('https://www.google.com/', '$direct'),
    utm_source: word('google', 'newsletter', 'Facebook', '', 'partner'),
    utm_medium: word('cpc', 'email', 'social', null),
    utm_campaign: word('spring', 'shop', ['a', 1]),
    utm_term: word('shoes'),
    utm_content: word(5, true),
    ...Object.fromEntries(
      CLICK_IDS.map((name) => [name, fc.option(fc.constantFrom('c1', ''), { nil: undefined, freq: 5 })]),
    ),
    other: fc.constant({ $current_url: 'https://nested.example/' }),
  },
  { requiredKeys: [] },
);
/** Mostly the hours of the sessions; also their very ends, and days that none of them can reach. */
const moment = fc.oneof(
  { weight: 6, arbitrary: fc.integer({ min: 0, max: 4 * HOUR }).map((offset) => BASE + offset) },
  { weight: 3, arbitrary: fc.constantFrom(0, 5_000, 9_999, 10_000, HOUR).map((offset) => BASE + offset) },
  {
    weight: 3,
    arbitrary: fc.constantFrom(
      BASE - HOUR,
      BASE - HOUR - 1,
      BASE + 25 * HOUR - 1,
      BASE + 25 * HOUR,
      BASE + 29 * HOUR,
    ),
  },
  {
    weight: 2,
    arbitrary: fc
      .constantFrom(-60, -41, -30, 26, 48, 49, 70, 24 * 40, -24 * 400)
      .map((hours) => BASE + hours * HOUR),
  },
);
const event = fc.record({
  uuid: fc.uuid({ version: 7 }),
  event: fc.constantFrom('$pageview', '$pageview', '$autocapture', '$screen', 'bought', '$pageleave'),
  distinct_id: fc.constantFrom('anonymous', 'ada@example.com', 'zoë'),
  timestamp: moment,
  inserted_at: fc.integer({ min: 0, max: 48 * HOUR }).map((offset) => BASE + offset),
  session_id: fc.option(fc.constantFrom(...IDS), { freq: 12 }),
  properties,
});
const stretch = fc
  .tuple(fc.integer({ min: -30, max: 80 }), fc.constantFrom(1, 5, 24, 200))
  .map(
    ([from, hours]): Stretch => ({ from: iso(BASE + from * HOUR), to: iso(BASE + (from + hours) * HOUR) }),
  );

/** What the model says, in the form and order of rows; the channel is decided by the function that the database has. */
async function asRows(sessions: ModelSession[]): Promise<SessionRow[]> {
  const { rows } = await database.pool.query(
    `select channel_type(s ->> 'entry_utm_source', s ->> 'entry_utm_medium', s ->> 'entry_utm_campaign',
       s ->> 'entry_referring_domain', s ->> 'entry_hostname',
       array(select k from unnest($2::text[]) as k where s ->> ('entry_' || k) is not null)) as channel
     from json_array_elements($1::json) with ordinality as given (s, n) order by n`,
    [JSON.stringify(sessions), CLICK_IDS],
  );
  return sessions
    .map((session, index) => ({
      ...session,
      channel_type: rows[index].channel,
      start_timestamp: iso(session.start_timestamp),
      end_timestamp: iso(session.end_timestamp),
      _inserted_at: iso(session._inserted_at),
    }))
    .sort(inOrder);
}

const inOrder = (a: SessionRow, b: SessionRow) =>
  Date.parse(a.start_timestamp) - Date.parse(b.start_timestamp) || (a.session_id < b.session_id ? -1 : 1);

const plain = (rows: SessionRow[]) =>
  rows
    .map((row) => ({
      ...row,
      start_timestamp: iso(Date.parse(row.start_timestamp)),
      end_timestamp: iso(Date.parse(row.end_timestamp)),
      _inserted_at: iso(Date.parse(row._inserted_at)),
    }))
    .sort(inOrder);

describe('sessions', () => {
  test('are what the plain definition says, whichever way they are asked for', async () => {
    await database.pool.query(
      `insert into organizations (id, name, slug) values ('00000000-0000-4000-8000-000000000001', 'a', 'a');
       insert into projects (uuid, organization_id, name, api_token)
       values (gen_random_uuid(), '00000000-0000-4000-8000-000000000001', 'one', 'phc_1')`,
    );
    let rows = 0;
    await fc.assert(
      fc.asyncProperty(
        fc.uniqueArray(event, { maxLength: 60, selector: (one) => one.uuid }),
        stretch,
        async (events: ModelEvent[], asked) => {
          await database.pool.query('truncate events');
          const stored = events.map((one) => ({
            ...one,
            timestamp: iso(one.timestamp),
            inserted_at: iso(one.inserted_at),
          }));
          await insertEvents(
            database.pool,
            stored.map((one) => ({ ...one, project_id: 1 })),
          );
          // Somebody else's events with the same ids and times.
          await insertEvents(
            database.pool,
            stored.map((one) => ({ ...one, project_id: 2, distinct_id: 'stranger', event: '$autocapture' })),
          );
          const { pool } = database;
          expect(plain(await listSessionsBegun(pool, 1, asked))).toEqual(
            await asRows(modelBegun(events, asked)),
          );
          const changed = plain(await listSessionsChanged(pool, 1, asked));
          expect(changed).toEqual(await asRows(modelChanged(events, asked)));
          const all = (await pool.query('select * from sessions where project_id = 1')).rows.map(
            ({ project_id, ...row }) => row,
          );
          expect(plain(all)).toEqual(await asRows(modelAll(events)));
          for (const id of IDS) {
            const inside = (time: number) => time >= Date.parse(asked.from) && time < Date.parse(asked.to);
            for (const near of [undefined, asked]) {
              const one = await findSession(pool, 1, id, near);
              const expected = modelSession(events, id, near ? [inside] : []);
              expect(one ? plain([one]) : []).toEqual(await asRows(expected ? [expected] : []));
            }
          }
          rows += changed.length + all.length;
        },
      ),
      { seed: SEED, numRuns: 60 },
    );
    expect(rows).toBeGreaterThan(200);
  });

  test.each<[string, [string, number][], boolean | null, number]>([
    ['one pageview', [['$pageview', 0]], true, 1],
    ['one screen', [['$screen', 0]], true, 1],
    [
      'another event just before ten seconds',
      [
        ['$pageview', 0],
        ['x', 9_999],
      ],
      true,
      1,
    ],
    [
      'another event at ten seconds',
      [
        ['$pageview', 0],
        ['x', 10_000],
      ],
      false,
      1,
    ],
    [
      'two pageviews',
      [
        ['$pageview', 0],
        ['$pageview', 1],
      ],
      false,
      2,
    ],
    [
      'a pageview and a screen',
      [
        ['$pageview', 0],
        ['$screen', 1],
      ],
      false,
      2,
    ],
    [
      'an autocaptured click',
      [
        ['$pageview', 0],
        ['$autocapture', 1],
      ],
      false,
      2,
    ],
    [
      'neither pageview nor screen',
      [
        ['$autocapture', 0],
        ['x', 1],
      ],
      null,
      1,
    ],
  ])('%s: is it a bounce', async (_name, events, isBounce, counted) => {
    const id = madeAt(BASE, 10);
    await database.pool.query('delete from events where project_id = 4');
    await insertEvents(
      database.pool,
      events.map(([name, offset]) => ({
        project_id: 4,
        event: name,
        timestamp: iso(BASE + offset),
        session_id: id,
      })),
    );
    const session = (await findSession(database.pool, 4, id)) as SessionRow;
    expect([session.is_bounce, session.page_screen_autocapture_count_up_to]).toEqual([isBounce, counted]);
  });

  test('of a thousand pages and one show the first thousand, and count all', async () => {
    const id = madeAt(BASE, 9);
    await insertEvents(
      database.pool,
      Array.from({ length: 1_001 }, (_, n) => ({
        project_id: 3,
        timestamp: iso(BASE + n),
        session_id: id,
        properties: { $current_url: `https://example.com/${n}` },
      })),
    );
    const session = (await findSession(database.pool, 3, id)) as SessionRow;
    expect([session.urls.length, session.urls[999], session.num_uniq_urls]).toEqual([
      1000,
      'https://example.com/999',
      1001,
    ]);
    expect([session.end_current_url, session.is_bounce]).toEqual(['https://example.com/1000', false]);
  });
});
