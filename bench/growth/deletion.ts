// What others notice while a project with most of the events is deleted.
import { setTimeout as pause } from 'node:timers/promises';
import { transaction } from '../../db/pool.ts';
import { PRODUCTS } from '../../products.ts';
import { TENANCY_STEPS } from '../../tenancy/maintenance.ts';
import { createOrganization } from '../../tenancy/organizations.ts';
import { createUser } from '../../tenancy/users.ts';
import { quantile, shown } from '../event-queries/ask.ts';
import { client } from '../neighbour/http.ts';
import type { Installation } from './installation.ts';

const REQUESTS_PER_SECOND = 50;
const EVENTS = 10;

/** Sends an open loop of requests with events of somebody else. The latency counts from the planned time. */
async function probe(port: number, token: string, seconds: number): Promise<number[]> {
  const { ask, close } = client(port, '127.0.0.1');
  const event = () => ({
    ...{ event: '$pageview', distinct_id: `visitor-${Math.floor(Math.random() * 5_000)}` },
    properties: { $current_url: 'https://example.com/', padding: 'x'.repeat(600) },
  });
  const begin = performance.now() + 200;
  const asked: Promise<number>[] = [];
  for (let n = 0; n < seconds * REQUESTS_PER_SECOND; n += 1) {
    const planned = begin + (n * 1000) / REQUESTS_PER_SECOND;
    await pause(Math.max(0, planned - performance.now()));
    const body = JSON.stringify({ api_key: token, batch: Array.from({ length: EVENTS }, event) });
    const headers = { 'content-type': 'application/json' };
    asked.push(
      ask({ method: 'POST', path: '/batch/', headers, body }).then((status) => {
        if (status !== '200') throw new Error(`/batch/: ${status}`);
        return performance.now() - planned;
      }),
    );
  }
  const latencies = await Promise.all(asked);
  close();
  return latencies;
}

/** Measures the requests of somebody else alone, and while maintenance deletes the large project. Prints a table. */
export async function measureDeletion(
  { pool, projectId }: Installation,
  port: number,
  { seconds }: { seconds: number },
): Promise<void> {
  const token = await transaction(pool, async (database) => {
    const user = await createUser(database, { email: `probe-${Date.now()}@example.com`, firstName: 'Probe' });
    if (!user) throw new Error('the address is taken');
    const { project } = await createOrganization(database, { name: 'Probe', userId: user.id });
    return project.api_token;
  });
  await probe(port, token, 5);
  const alone = await probe(port, token, seconds);
  await pool.query(
    `insert into project_deletions (project_id, organization_id, schedules_stopped_at)
     select id, organization_id, now() from projects where id = $1`,
    [projectId],
  );
  const step = TENANCY_STEPS.find(({ name }) => name === 'deleteProjectData');
  const work = { signal: new AbortController().signal, beat: () => undefined };
  const begin = performance.now();
  let deleted = 0;
  let isOver = false;
  const deleting = (async () => {
    for (;;) {
      const some = await step?.run(
        {
          ...{
            pool,
            products: PRODUCTS,
            keyring: undefined,
            schedules: { stopProject: async () => undefined },
          },
          activityLog: { entries: 1, bytes: 1, days: 1 },
        },
        work,
      );
      if (!some) break;
      deleted += Number(some);
    }
    isOver = true;
  })();
  const beside: number[] = [];
  while (!isOver) beside.push(...(await probe(port, token, seconds)));
  await deleting;
  const took = (performance.now() - begin) / 1000;
  console.log('\n| requests | p50 ms | p99 ms | p99 × alone |');
  console.log('| --- | --- | --- | --- |');
  for (const [name, latencies] of Object.entries({ alone, 'beside the deletion': beside })) {
    const ratio = quantile(latencies, 0.99) / quantile(alone, 0.99);
    console.log(
      `| ${name} | ${shown(quantile(latencies, 0.5))} | ${shown(quantile(latencies, 0.99))} | ${ratio.toFixed(2)} |`,
    );
  }
  console.log(
    `\n${deleted} rows were deleted in ${took.toFixed(0)} s, ${Math.round(deleted / took)} a second.`,
  );
}
