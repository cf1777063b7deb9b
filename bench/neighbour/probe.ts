// The process of who behaves: an open loop. Each request has its time, whatever became of those before it, and its
// latency counts from that time. Prints a ProbeResult.
import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { type Answers, type Ask, client, count, task } from './http.ts';
import { type Kind, REQUESTS_PER_SECOND, SECOND } from './mixture.ts';
import type { Tenant } from './tenants.ts';

export interface ProbeTask {
  port: number;
  tenant: Tenant;
  /** Keys that are used in turn, so seldom that each was not seen for a minute. */
  coldKeys: string[];
  /** How many of them earlier probes have used. */
  coldKeysUsed: number;
  seconds: number;
}

export interface ProbeResult {
  answers: Answers;
  /** Milliseconds, ascending. */
  latencies: number[];
  /** Milliseconds by what was asked, ascending. */
  latenciesByKind: Record<string, number[]>;
  /** How late requests were sent at most, in milliseconds. This is the fault of the probe or of the machine. */
  sentLate: number;
}

/** Requests that are not answered by then count as lost. */
const PATIENCE = 60_000;

const { port, tenant, coldKeys, coldKeysUsed, seconds } = task<ProbeTask>();
const { ask, close } = client(port, '127.0.0.1');
const answers: Answers = {};
const latenciesByKind: Record<string, number[]> = {};
const PADDING = 'x'.repeat(600);
const place = `/api/projects/${tenant.projectId}`;
let cold = coldKeysUsed;

const event = () => ({
  event: '$pageview',
  distinct_id: `user-${1 + Math.floor(Math.random() * 2_000)}`,
  uuid: randomUUID(),
  properties: { $current_url: 'https://example.com/', padding: PADDING },
});
const post = (path: string, body: object): Ask => ({
  ...{ method: 'POST', path, body: JSON.stringify(body) },
  headers: { 'content-type': 'application/json' },
});
const read = (path: string): Ask => ({
  path: place + path,
  headers: { authorization: `Bearer ${tenant.key}` },
});

const KINDS: Record<Kind, () => Ask> = {
  batch: () => post('/batch/', { api_key: tenant.token, batch: Array.from({ length: 10 }, event) }),
  event: () => post('/i/v0/e/', { api_key: tenant.token, ...event() }),
  'cold key': () => post('/i/v0/e/', { api_key: coldKeys[cold++ % coldKeys.length], ...event() }),
  alive: () => ({ path: '/_livez' }),
  exports: () => read('/batch_exports/'),
  events: () => read('/events/?limit=20'),
  persons: () => read('/persons/?limit=20'),
};

const begin = performance.now() + 200;
const asked: Promise<unknown>[] = [];
let sentLate = 0;
for (let n = 0; n < seconds * REQUESTS_PER_SECOND; n += 1) {
  const planned = begin + (n * 1000) / REQUESTS_PER_SECOND;
  const wait = planned - performance.now();
  if (wait > 0) await pause(wait);
  const kind = SECOND[n % SECOND.length] as Kind;
  sentLate = Math.max(sentLate, performance.now() - planned);
  const request = KINDS[kind]();
  const lost = pause(PATIENCE, 'lost', { ref: false });
  asked.push(
    Promise.race([ask(request), lost]).then((status) => {
      count(answers, kind, status);
      const latencies = latenciesByKind[kind] ?? [];
      latenciesByKind[kind] = latencies;
      latencies.push(performance.now() - planned);
    }),
  );
}
await Promise.all(asked);
close();
const ascending = (numbers: number[]) => numbers.sort((a, b) => a - b);
const result: ProbeResult = {
  answers,
  latencies: ascending(Object.values(latenciesByKind).flat()),
  latenciesByKind: Object.fromEntries(
    Object.entries(latenciesByKind).map(([kind, latencies]) => [kind, ascending(latencies)]),
  ),
  sentLate,
};
console.log(JSON.stringify(result));
