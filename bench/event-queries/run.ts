// `npm run bench -- event-queries [--events 10000000] [--rounds 40] [--plain]` asks the API for few events of many: by name, by
// distinct id, by person and by a property of a day. Beside each query stands SQL written by hand, over the same indexes.
// `--plain` takes the indexes of the weeks and what is known of their times away.
import type { ChildProcess } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { loadConfig } from '../../config.ts';
import { SEALED } from '../../db/event-indexes.ts';
import { ensureEventPartitions, listEventPartitions, partitionOf } from '../../db/event-partitions.ts';
import { sealEventWeeks, summarizeOpenWeeks } from '../../db/event-weeks.ts';
import { createPool, type Pool, transaction } from '../../db/pool.ts';
import { setUpDatabase } from '../../db/wait.ts';
import { startPostgres } from '../../stack/postgres.ts';
import { createOrganization } from '../../tenancy/organizations.ts';
import { issuePersonalApiKey } from '../../tenancy/personal-api-keys.ts';
import { createUser } from '../../tenancy/users.ts';
import { startApi } from '../api-process.ts';

const { values: given } = parseArgs({
  options: {
    events: { type: 'string', default: '10000000' },
    rounds: { type: 'string', default: '40' },
    plain: { type: 'boolean', default: false },
  },
});
const EVENTS = Number(given.events);
const ROUNDS = Number(given.rounds);
const WEEKS = 156;
const PROJECTS = 20;
const DAY = 86_400_000;
const NOW = Date.now();
const begin = partitionOf(new Date(NOW - (WEEKS - 1) * 7 * DAY)).from.getTime();

/** Four fifths of all events belong to the first project. One of a hundred came in some days late. */
async function fill(pool: Pool, projects: readonly number[]): Promise<void> {
  const people = Math.floor(EVENTS / 100);
  for (let week = 0; week < WEEKS; week += 1) {
    const from = begin + week * 7 * DAY;
    const to = Math.min(from + 7 * DAY, NOW);
    await pool.query(
      `insert into events (project_id, uuid, timestamp, created_at, inserted_at, historical, event, distinct_id, properties,
         session_id, elements_chain, person_id, person_mode, person_properties)
       select case when random() < 0.8 then $1 else $2::int + floor(random() * ${PROJECTS - 1})::int end, gen_random_uuid(),
         at - case when random() < 0.01 then random() * interval '5 days' else interval '0' end, at, at, false,
         case when random() < 0.0002 then 'rare' else (array['$pageview', '$pageview', '$autocapture', 'click', 'view', 'scroll'])[1 + floor(random() * 6)::int] end,
         'user-' || who, json_build_object('$current_url', 'https://example.com/' || md5(random()::text), '$browser', 'Chrome',
           'plan', (array['free', 'free', 'free', 'paid'])[1 + floor(random() * 4)::int], 'price', floor(random() * 1000),
           'filler', md5(random()::text) || md5(random()::text) || md5(random()::text) || md5(random()::text) || md5(random()::text)
             || md5(random()::text) || md5(random()::text) || md5(random()::text)),
         md5(who::text), '', md5(who::text)::uuid, 'full', '{"email":"someone@example.com"}'
       from (select $3::timestamptz + n * ($4::timestamptz - $3::timestamptz) / $5 as at, floor(random() * $6)::int as who
             from generate_series(0, $5 - 1) as n) as made`,
      [
        projects[0],
        projects[1],
        new Date(from).toISOString(),
        new Date(to).toISOString(),
        Math.floor(EVENTS / WEEKS),
        people,
      ],
    );
  }
  await pool.query(
    `with made as (
       insert into persons (project_id, id, created_at, is_identified, properties, version, changed_at)
       select $1, md5(n::text)::uuid, now(), true, '{}', 0, now() from generate_series(0, $2 - 1) as n returning id)
     insert into person_distinct_ids (project_id, distinct_id, person_id, version, changed_at)
     select $1, 'user-' || n, md5(n::text)::uuid, 0, now() from generate_series(0, $2 - 1) as n`,
    [projects[0], people],
  );
}

interface Case {
  name: string;
  hogql: string;
  sql: string;
}

const text = (at: number) => new Date(at).toISOString().slice(0, 19).replace('T', ' ');

/** Queries for the newest hundred events of a range of times. */
function casesOf(project: number, from: number, to: number): Case[] {
  const when = `timestamp > '${text(from)}' and timestamp < '${text(to)}'`;
  const stored = `inserted_at >= '${text(from - DAY)}' and inserted_at < '${text(to + 7 * DAY)}'`;
  const order = 'order by timestamp desc, uuid desc limit 100';
  const who = Math.floor(Math.random() * (EVENTS / 100));
  const id = uuidOf(who);
  const one = (name: string, condition: string, byHand = condition): Case => ({
    name,
    hogql: `select uuid, event, distinct_id, timestamp from events where ${when}${condition && ` and ${condition}`} ${order}`,
    sql: `select uuid, event, distinct_id, timestamp from events where project_id = ${project} and ${when} and ${stored}
      ${byHand && `and ${byHand}`} ${order}`,
  });
  return [
    one('newest', ''),
    one('by a rare name', "event = 'rare'"),
    one('by a distinct id', `distinct_id = 'user-${who}'`),
    one('by a person', `person_id = '${id}'`, `(person_id = '${id}' or distinct_id = 'user-${who}')`),
    one('by a property', "properties.plan = 'paid'", "properties ->> 'plan' = 'paid'"),
  ];
}

const uuidOf = (who: number): string => {
  const hash = createHash('md5').update(String(who)).digest('hex');
  return [hash.slice(0, 8), hash.slice(8, 12), hash.slice(12, 16), hash.slice(16, 20), hash.slice(20)].join(
    '-',
  );
};

const quantile = (times: readonly number[], share: number) =>
  times.toSorted((a, b) => a - b)[Math.min(times.length - 1, Math.floor(times.length * share))] ?? Number.NaN;
const shown = (ms: number) => ms.toFixed(1);

const stateDir = mkdtempSync(path.join(tmpdir(), 'sluice-bench-'));
const cacheDir = loadConfig({ SLUICE_CACHE_DIR: process.env.SLUICE_CACHE_DIR }).SLUICE_CACHE_DIR;
const children: ChildProcess[] = [];
const postgres = await startPostgres({
  ...{ dataDir: stateDir, cacheDir, port: 0 },
  settings: { shared_buffers: '4GB', max_wal_size: '8GB', fsync: 'off' },
});
try {
  const roles = await setUpDatabase({ url: postgres.url });
  const pool = createPool({ url: roles.server, size: 4, name: 'bench' });
  const owner = await transaction(pool, async (client) => {
    const user = await createUser(client, { email: 'bench@example.com', firstName: 'Bench' });
    if (!user) throw new Error('the address is taken');
    const { project } = await createOrganization(client, { name: 'Bench', userId: user.id });
    const { value: key } = await issuePersonalApiKey(client, {
      userId: user.id,
      label: 'bench',
      scopes: ['*'],
    });
    return { projectId: project.id, key };
  });
  await ensureEventPartitions(pool, new Date(NOW), 1);
  for (let week = 0; week < WEEKS; week += 1) {
    await ensureEventPartitions(pool, new Date(begin + week * 7 * DAY), 0);
  }
  let since = performance.now();
  const lap = (what: string) => {
    console.log(`${what}: ${((performance.now() - since) / 1000).toFixed(0)} s`);
    since = performance.now();
  };
  await fill(pool, [owner.projectId, owner.projectId + 1]);
  await pool.query('vacuum analyze');
  lap(`${EVENTS} events in ${WEEKS} weeks of ${PROJECTS} projects`);
  const work = { signal: new AbortController().signal, beat: () => undefined };
  const sealed = await sealEventWeeks(pool, work);
  lap(`${sealed} weeks sealed`);
  await summarizeOpenWeeks(pool, work);
  lap('the open week summarized');
  if (given.plain) {
    for (const { name } of await listEventPartitions(pool)) {
      for (const index of SEALED) await pool.query(`drop index if exists ${name}_${index.name}`);
    }
    await pool.query('truncate event_weeks, event_spans');
  }
  const { rows: sizes } = await pool.query(
    `select pg_size_pretty(sum(pg_table_size(c.oid))) as heap, pg_size_pretty(sum(pg_indexes_size(c.oid))) as indexes
     from pg_inherits i join pg_class c on c.oid = i.inhrelid where i.inhparent = 'events'::regclass`,
  );
  console.log(`tables ${sizes[0].heap}, indexes ${sizes[0].indexes}\n`);
  const api = await startApi({ databaseUrl: roles.server, stateDir, children });
  const ask = async (query: string) => {
    const answer = await fetch(`http://127.0.0.1:${api.port}/api/projects/${owner.projectId}/query/`, {
      method: 'POST',
      headers: { authorization: `Bearer ${owner.key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ query: { kind: 'HogQLQuery', query } }),
    });
    const body = (await answer.json()) as { results: unknown[]; timings: { k: string; t: number }[] };
    if (answer.status !== 200) throw new Error(`${query}: ${JSON.stringify(body)}`);
    const parts = Object.fromEntries(body.timings.map(({ k, t }) => [k, t * 1000]));
    return { rows: body.results.length, compile: parts.compile ?? 0, run: parts.run ?? 0 };
  };
  const open = partitionOf(new Date(NOW)).from.getTime();
  const places: [string, () => [number, number]][] = [
    ['a day of the open week', () => [Math.max(open, NOW - DAY), NOW]],
    ['a day of a sealed week', () => within(DAY)],
    ['a month of sealed weeks', () => within(30 * DAY)],
  ];
  const within = (length: number): [number, number] => {
    const from = begin + Math.random() * (open - begin - length);
    return [from, from + length];
  };
  console.log(
    '| times | events | rows | API p50 ms | p99 ms | compile p50 ms | Postgres p50 ms | p99 ms | SQL by hand p50 ms | p99 ms | Postgres p50 × by hand |',
  );
  console.log('| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |');
  for (const [place, times] of places) {
    for (const [number] of casesOf(owner.projectId, ...times()).entries()) {
      const taken = {
        api: [] as number[],
        compile: [] as number[],
        run: [] as number[],
        hand: [] as number[],
      };
      let found = 0;
      let name = '';
      for (let round = -3; round < ROUNDS; round += 1) {
        const one = casesOf(owner.projectId, ...times())[number] as Case;
        name = one.name;
        const start = performance.now();
        const { rows, compile, run } = await ask(one.hogql);
        const middle = performance.now();
        const { rowCount } = await pool.query(one.sql);
        const end = performance.now();
        if (rows !== rowCount) throw new Error(`${one.hogql}: ${rows} rows, and ${rowCount} by hand`);
        if (round < 0) continue;
        found += rows;
        taken.api.push(middle - start);
        taken.compile.push(compile);
        taken.run.push(run);
        taken.hand.push(end - middle);
      }
      const { api, compile, run, hand } = taken;
      const ratio = quantile(run, 0.5) / quantile(hand, 0.5);
      const cells = [
        ...[place, name, (found / ROUNDS).toFixed(1)],
        ...[shown(quantile(api, 0.5)), shown(quantile(api, 0.99)), shown(quantile(compile, 0.5))],
        ...[shown(quantile(run, 0.5)), shown(quantile(run, 0.99))],
        ...[shown(quantile(hand, 0.5)), shown(quantile(hand, 0.99)), ratio.toFixed(2)],
      ];
      console.log(`| ${cells.join(' | ')} |`);
    }
  }
  await pool.end();
} finally {
  for (const child of children) child.kill('SIGTERM');
  await Promise.all(children.map((child) => child.exitCode ?? once(child, 'exit')));
  await postgres.stop();
  rmSync(stateDir, { recursive: true, force: true });
}
