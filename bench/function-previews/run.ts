// `npm run bench -- function-previews [--events 200000]` measures how fast a preview looks at stored events, beside
// Postgres, which counts the same events with conditions on their JSON.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { parseArgs } from 'node:util';
import pg from 'pg';
import { loadConfig } from '../../config.ts';
import { ensureEventPartitions } from '../../db/event-partitions.ts';
import { createPool } from '../../db/pool.ts';
import { reading } from '../../db/reading.ts';
import { setUpDatabase } from '../../db/wait.ts';
import { scanEvents } from '../../functions/commands/scan-events.ts';
import type { FunctionSource } from '../../functions/compile.ts';
import { createFunctionCompiler } from '../../functions/compiler.ts';
import { NO_SECRETS } from '../../functions/reads/secrets.ts';
import type { CompiledContent } from '../../functions/rules/definition.ts';
import { filtersOf } from '../../functions/rules/variants.ts';
import { createRunner } from '../../functions/runner.ts';
import type { Bytecode } from '../../hog/bytecode/index.ts';
import { startPostgres } from '../../stack/postgres.ts';
import { createEvents } from '../export-formats/dataset.ts';

const { values } = parseArgs({ options: { events: { type: 'string', default: '200000' } } });
const EVENTS = Number(values.events);
const ROUNDS = 5;
const median = (times: number[]) =>
  times.toSorted((a, b) => a - b)[Math.floor(times.length / 2)] ?? Number.NaN;

const CASES = [
  {
    what: 'events of one name',
    names: ['$autocapture'],
    filters: { events: [{ id: '$autocapture', type: 'events' }] },
    sql: `event = '$autocapture'`,
  },
  {
    what: 'any event, by a property of the event',
    names: null,
    filters: { properties: [{ key: 'plan', value: 'team', operator: 'exact', type: 'event' }] },
    sql: `properties->>'plan' = 'team'`,
  },
  {
    what: 'the same, masked by person',
    names: null,
    filters: { properties: [{ key: 'plan', value: 'team', operator: 'exact', type: 'event' }] },
    masking: { ttl: 3_600, hash: '{person.id}' },
    sql: `properties->>'plan' = 'team'`,
  },
];

const stateDir = mkdtempSync(path.join(tmpdir(), 'sluice-bench-'));
const cacheDir = loadConfig({ SLUICE_CACHE_DIR: process.env.SLUICE_CACHE_DIR }).SLUICE_CACHE_DIR;
const settings = { fsync: 'off' };
const postgres = await startPostgres({ dataDir: stateDir, cacheDir, port: 0, settings });
const compiler = createFunctionCompiler();
const runner = createRunner();
try {
  const roles = await setUpDatabase({ url: postgres.url });
  await fill(postgres.url);
  const pool = createPool({ url: roles.server, size: 2, name: 'bench' });
  console.log(`${EVENTS} events, ${ROUNDS} rounds, medians\n`);
  for (const one of CASES) {
    const compiled = await compiler.compile(1, sourceOf(one.filters, one.masking ?? null));
    const times: Record<'preview' | 'postgres', number[]> = { preview: [], postgres: [] };
    let matched = 0;
    for (let round = 0; round < ROUNDS; round += 1) {
      times.preview.push(await timed(async () => (matched = await preview(compiled, one.names))));
      times.postgres.push(
        await timed(async () => {
          const { rows } = await pool.query(
            `select count(*)::int from events where project_id = 1 and ${one.sql}`,
          );
          if (rows[0].count !== matched) throw new Error(`${matched} found, but ${rows[0].count} are there`);
        }),
      );
    }
    const [own, other] = [median(times.preview), median(times.postgres)];
    console.log(
      `${one.what}: ${matched} match; preview ${own.toFixed(0)} ms (${Math.round(EVENTS / (own / 1_000))} events/s), ` +
        `Postgres ${other.toFixed(0)} ms, ${(own / other).toFixed(2)} x`,
    );
  }

  async function preview(compiled: CompiledContent, names: string[] | null): Promise<number> {
    const scan = await scanEvents(
      { runner, read: (work) => reading(pool, { projectId: 1 }, work) },
      {
        ...{ type: 'destination', names, after: '2000-01-01', before: '2100-01-01', mostEvents: EVENTS },
        deadline: Number.POSITIVE_INFINITY,
        facts: {
          ...{ project: { id: 1, name: 'Bench' }, site: 'https://sluice.example' },
          source: { id: 'new', name: null },
        },
        versions: [
          {
            filters: filtersOf(compiled),
            masking: (compiled.masking?.bytecode ?? null) as Bytecode | null,
            rule: compiled.masking,
          },
        ],
      },
    );
    if (scan.searched !== EVENTS) throw new Error(`${scan.searched} events were looked at`);
    return scan.tally.counts[0]?.matched ?? 0;
  }
  await pool.end();
} finally {
  await Promise.all([compiler.close(), runner.close()]);
  await postgres.stop();
  rmSync(stateDir, { recursive: true, force: true });
}

async function timed(work: () => unknown): Promise<number> {
  const began = performance.now();
  await work();
  return performance.now() - began;
}

function sourceOf(filters: object, masking: { ttl: number; hash: string } | null): FunctionSource {
  const content = {
    hog: 'return 1',
    filters: { ...filters },
    masking,
    mappings: null,
    inputs_schema: [],
    inputs: {},
  };
  return {
    ...{ type: 'destination', content, secrets: NO_SECRETS, isEnabled: true, testAccounts: [], actions: [] },
    ...{ now: Date.now(), timezone: 'UTC' },
  };
}

async function fill(url: string): Promise<void> {
  const start = new Date();
  const pool = createPool({ url, size: 1, name: 'bench' });
  await ensureEventPartitions(pool, start, 1);
  await pool.end();
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  await createEvents(client, EVENTS, start);
  await client.query('vacuum (analyze) events');
  await client.end();
}
