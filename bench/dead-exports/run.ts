// `npm run bench -- dead-exports [--exports 20] [--seconds 120] [--period 20] [--rounds 2] [--write]`
// Measures how long healthy exports take beside dead ones, whose destinations take the connection and then never finish:
// TLS, an answer, a commit. One worker as it ships does everything. Each round measures the healthy exports alone, then
// beside as many dead ones, each time with servers of its own. Healthy runs are fired in an open loop, spread over the
// period and then all at once, with backfills and verifications among them. Their lag counts from the firing.
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { ensureEventPartitions } from '../../db/event-partitions.ts';
import { createPool } from '../../db/pool.ts';
import type { BatchExportRow } from '../../exports/rows/batch-exports.ts';
import type { IntervalText } from '../../intervals/index.ts';
import { generateKey, parseKeyring } from '../../secrets/envelope.ts';
import { type ExportStack, startExportStack } from '../export-stack.ts';
import { type DeadDestinations, startDeadDestinations } from './dead-destinations.ts';
import {
  createExport,
  EACH_MILLISECONDS,
  type Firing,
  fill,
  type Kind,
  Load,
  lagsOf,
  pastIntervals,
} from './load.ts';
import { type Seen, watchPlaces } from './watch.ts';

const { values } = parseArgs({
  options: {
    exports: { type: 'string', default: '20' },
    events: { type: 'string', default: '200' },
    seconds: { type: 'string', default: '120' },
    period: { type: 'string', default: '20' },
    rounds: { type: 'string', default: '2' },
    write: { type: 'boolean', default: false },
  },
});
const EXPORTS = Number(values.exports);
const EVENTS = Number(values.events);
const WINDOW = Number(values.seconds) * 1000;
const ROUNDS = Number(values.rounds);
const SECOND = 1000;
/** Every export is fired once in this time. */
const PERIOD = Number(values.period) * SECOND;
const DEAD_PERIOD = 1.5 * PERIOD;
const BACKFILL_EVERY = 15 * SECOND;
const VERIFY_EVERY = 5 * SECOND;
const BACKFILL_INTERVALS = 6;
/** Healthy exports are of the first projects; half of the dead ones are of these too, the others of projects of their own. */
const SHARED_PROJECTS = Math.max(1, EXPORTS / 2);
const PROJECTS = 2 * SHARED_PROJECTS;
/** After this time, what was fired counts as lost. */
const PATIENCE = 5 * 60 * SECOND;
const GOAL = 2;
const MOST_MUTE_SECONDS = 15;

/** What one window shows. */
interface Window {
  lags: Record<Kind, number[]>;
  /** Of the runs: until the row existed. */
  begun: number[];
  lost: number;
  wrong: number;
  paused: number;
  longestWaitSeconds: number;
  dead?: Seen & { attempts: number; completed: number; says: Record<string, string> };
}

/** Fires healthy work until the window is over, and waits for it. */
async function fireHealthy(load: Load, rows: readonly BatchExportRow[], intervals: readonly IntervalText[]) {
  const began = Date.now() + SECOND;
  const [regular, past] = [
    intervals.slice(0, -BACKFILL_INTERVALS * 4),
    intervals.slice(-BACKFILL_INTERVALS * 4),
  ];
  for (let round = 0; round * PERIOD < WINDOW; round += 1) {
    const kind = round % 2 === 0 ? 'spread' : 'burst';
    rows.forEach((row, n) => {
      const at = began + round * PERIOD + (kind === 'spread' ? (n * PERIOD) / rows.length : 0);
      // The first interval was exported before the window.
      const interval = regular[1 + (round % (regular.length - 1))] as IntervalText;
      load.at(at, () => load.run(kind, row, interval, at));
    });
  }
  for (let n = 0; n * BACKFILL_EVERY < WINDOW; n += 1) {
    const from = (Math.floor(n / rows.length) % 4) * BACKFILL_INTERVALS;
    const start = past[from]?.start as string;
    const end = past[from + BACKFILL_INTERVALS - 1]?.end as string;
    const at = began + n * BACKFILL_EVERY + SECOND;
    load.at(at, () => load.backfill(rows[(n * 7) % rows.length] as BatchExportRow, { start, end }, at));
  }
  for (let n = 0; n * VERIFY_EVERY < WINDOW; n += 1) {
    const at = began + n * VERIFY_EVERY + 2 * SECOND;
    const row = rows[(n * 3) % rows.length] as BatchExportRow;
    load.at(at, () => load.verify(row, regular[0] as IntervalText, at, PATIENCE));
  }
  await load.started();
}

/** Fires dead work until the window is over. None of it ends. */
function fireDead(load: Load, rows: readonly BatchExportRow[], intervals: readonly IntervalText[]): void {
  const began = Date.now();
  for (let round = 0; round * DEAD_PERIOD < WINDOW; round += 1) {
    rows.forEach((row, n) => {
      // The first of all come at once.
      const at = began + round * DEAD_PERIOD + (round === 0 ? 0 : (n * DEAD_PERIOD) / rows.length);
      load.at(at, () => load.run('burst', row, intervals[round % intervals.length] as IntervalText, at));
    });
  }
  for (let n = 0; n * 2 * BACKFILL_EVERY < WINDOW; n += 1) {
    for (let one = 0; one < 4; one += 1) {
      const row = rows[(4 * n + one) % rows.length] as BatchExportRow;
      const { start } = intervals[0] as IntervalText;
      const { end } = intervals[BACKFILL_INTERVALS - 1] as IntervalText;
      const at = began + 2 * n * BACKFILL_EVERY;
      load.at(at, () => load.backfill(row, { start, end }, at).catch(() => undefined));
    }
  }
  for (let n = 0; n * VERIFY_EVERY < WINDOW; n += 1) {
    const row = rows[(n * 3) % rows.length] as BatchExportRow;
    const interval = intervals[n % intervals.length] as IntervalText;
    const at = began + n * VERIFY_EVERY;
    load.at(at, () => load.verify(row, interval, at, SECOND).catch(() => undefined));
  }
}

async function measure(stack: ExportStack, key: string, destinations?: DeadDestinations): Promise<Window> {
  const { pool } = stack;
  const keyring = parseKeyring(key);
  const intervals = pastIntervals(Date.now() - EACH_MILLISECONDS, 48);
  for (const one of [intervals[0], intervals.at(-1)])
    await ensureEventPartitions(pool, new Date(one?.start as string), 1);
  await fill(pool, { projects: PROJECTS, events: EVENTS, intervals });
  const create = (projectId: number, name: string, type: string, config: Record<string, unknown>) =>
    createExport(pool, keyring, { projectId, name, type, config });
  const healthy: BatchExportRow[] = [];
  const dead: BatchExportRow[] = [];
  const kinds = destinations?.kinds ?? [];
  for (let n = 0; n < EXPORTS; n += 1) {
    const project = 1 + (n % SHARED_PROJECTS);
    healthy.push(await create(project, `healthy ${n}`, 'File', { directory: `healthy-${n}` }));
    const kind = kinds[n % kinds.length];
    const own = n < EXPORTS / 2 ? project : project + SHARED_PROJECTS;
    if (kind) dead.push(await create(own, kind.how, kind.type, kind.config(n)));
  }
  // The first runs of a worker are slow.
  const warm = new Load(stack);
  await Promise.all(healthy.map((row) => warm.run('burst', row, intervals[0] as IntervalText, Date.now())));
  await ended(stack, warm.firings.burst);

  const watch = watchPlaces(
    pool,
    dead.map(({ id }) => id),
  );
  const deadLoad = new Load(stack);
  if (dead.length > 0) fireDead(deadLoad, dead, intervals);
  const load = new Load(stack);
  await fireHealthy(load, healthy, intervals);
  const kept = Object.entries(load.firings) as [Kind, Firing[]][];
  for (const [, firings] of kept) await ended(stack, firings);
  await deadLoad.started();
  const seen = await watch.stop();

  const lags = {} as Record<Kind, number[]>;
  const begun: number[] = [];
  let [lost, wrong] = [0, 0];
  for (const [kind, firings] of kept) {
    const found = await lagsOf(pool, firings);
    lags[kind] = found.lags;
    if (kind === 'spread' || kind === 'burst') begun.push(...found.begun);
    lost += found.open;
    wrong += found.wrong;
  }
  const { rows: counted } = await pool.query(
    'select count(*)::int as paused from batch_exports where paused',
  );
  const window: Window = {
    ...{ lags, begun, lost, wrong, paused: counted[0].paused },
    longestWaitSeconds: rounded(seen.longestHealthyWaitSeconds),
  };
  if (dead.length === 0) return window;
  const ids = dead.map(({ id }) => id);
  const { rows: totals } = await pool.query(
    `select (select count(*)::int from batch_export_runs where batch_export_id = any($1) and status = 'Completed') as completed,
       (select count(*)::int from batch_export_logs where batch_export_id = any($1) and message like 'Attempt %') as attempts`,
    [ids],
  );
  const { rows: said } = await pool.query(
    `select distinct on (e.name) e.name, r.latest_error from batch_export_runs r
     join batch_exports e on e.id = r.batch_export_id
     where r.batch_export_id = any($1) and r.latest_error is not null order by e.name, r.created_at`,
    [ids],
  );
  const says = Object.fromEntries(said.map((row) => [row.name, row.latest_error]));
  return { ...window, dead: { ...seen, ...totals[0], says } };
}

/** Waits until all that was fired has ended, but not for ever. */
async function ended({ pool }: ExportStack, firings: readonly Firing[]): Promise<void> {
  const until = Date.now() + PATIENCE;
  while ((await lagsOf(pool, firings)).open > 0 && Date.now() < until) await pause(SECOND / 4);
}

async function measureOnce(withDead: boolean): Promise<Window> {
  const key = generateKey('bench');
  const stops: (() => Promise<unknown>)[] = [];
  try {
    const stack = await startExportStack({
      SLUICE_ENCRYPTION_KEYS: key,
      SLUICE_EGRESS_ALLOW: '127.0.0.1',
    });
    stops.push(() => stack.stop());
    stopping = () => stack.stop();
    let destinations: DeadDestinations | undefined;
    if (withDead) {
      const lake = new URL(stack.url);
      lake.pathname = '/lake';
      const admin = createPool({ url: stack.url, size: 1, name: 'bench-lake' });
      await admin.query('create database lake').finally(() => admin.end());
      const started = await startDeadDestinations(lake.href);
      stops.push(() => started.close());
      destinations = started;
    }
    return await measure(stack, key, destinations);
  } finally {
    for (const stop of stops.reverse()) await stop();
  }
}

const at = (sorted: number[], share: number) =>
  sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
const rounded = (number: number) => Number(number.toFixed(2));
const summary = (lags: number[]) => {
  const sorted = lags.toSorted((a, b) => a - b);
  return {
    count: sorted.length,
    median: rounded(at(sorted, 0.5)),
    p95: rounded(at(sorted, 0.95)),
    most: rounded(sorted.at(-1) ?? Number.NaN),
  };
};

let stopping: () => Promise<unknown> = async () => undefined;
for (const signal of ['SIGINT', 'SIGTERM'] as const)
  process.once(signal, () => void stopping().finally(() => process.exit(1)));

const windows: { alone: Window; beside: Window }[] = [];
for (let round = 0; round < ROUNDS; round += 1) {
  const alone = await measureOnce(false);
  console.error(
    `round ${round + 1} alone: ${JSON.stringify(summary([...alone.lags.spread, ...alone.lags.burst]))}`,
  );
  const beside = await measureOnce(true);
  console.error(
    `round ${round + 1} beside: ${JSON.stringify(summary([...beside.lags.spread, ...beside.lags.burst]))}`,
  );
  windows.push({ alone, beside });
}
const KINDS: Kind[] = ['spread', 'burst', 'backfill', 'verification'];
const lags = KINDS.map((kind) => {
  const [alone, beside] = (['alone', 'beside'] as const).map((which) =>
    summary(windows.flatMap((window) => window[which].lags[kind])),
  ) as [ReturnType<typeof summary>, ReturnType<typeof summary>];
  const ratio = (of: 'median' | 'p95' | 'most') => rounded(beside[of] / alone[of]);
  return { kind, alone, beside, ratio: { median: ratio('median'), p95: ratio('p95'), most: ratio('most') } };
});
const all = windows.flatMap(({ alone, beside }) => [alone, beside]);
const sum = (of: 'lost' | 'wrong' | 'paused') => all.reduce((total, window) => total + window[of], 0);
const result = {
  ...{
    exports: EXPORTS,
    dead: EXPORTS,
    windowSeconds: WINDOW / SECOND,
    periodSeconds: PERIOD / SECOND,
    rounds: ROUNDS,
    eventsEach: EVENTS,
  },
  lags,
  begun: {
    alone: summary(windows.flatMap(({ alone }) => alone.begun)),
    beside: summary(windows.flatMap(({ beside }) => beside.begun)),
  },
  longestWaitSeconds: {
    alone: windows.map(({ alone }) => alone.longestWaitSeconds),
    beside: windows.map(({ beside }) => beside.longestWaitSeconds),
  },
  ...{ lost: sum('lost'), wrong: sum('wrong'), paused: sum('paused') },
  deadSeen: windows.map(({ beside }) => beside.dead),
};
console.log(JSON.stringify(result, null, 2));
const said = (isMet: boolean, text: string) => console.log(`${isMet ? 'met' : 'MISSED'}: ${text}`);
for (const { kind, ratio } of lags)
  said(
    ratio.median <= GOAL && ratio.p95 <= GOAL,
    `${kind}: the lag beside dead exports is ${ratio.median} times (median) and ${ratio.p95} times (p95) that without them (goal: ${GOAL})`,
  );
const mute = Math.max(...windows.map(({ beside }) => beside.dead?.longestMuteSeconds ?? 0));
said(
  mute <= MOST_MUTE_SECONDS,
  `a dead run says nothing for ${mute.toFixed(1)} s at most (goal: ${MOST_MUTE_SECONDS} s)`,
);
said(result.lost + result.wrong === 0, `${result.lost} healthy runs are lost and ${result.wrong} failed`);
said(result.paused === 0, `${result.paused} exports were paused`);
if (values.write)
  writeFileSync(path.join(import.meta.dirname, 'results.json'), `${JSON.stringify(result, null, 2)}\n`);
