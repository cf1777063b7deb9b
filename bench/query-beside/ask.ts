// Clients that ask one query after another, until the process is told to stop. Then it prints how often each status came, and how
// long answers with 200 took: in milliseconds, ascending. A client that is told to wait does.
import { setTimeout as pause } from 'node:timers/promises';

const { PORT, KEY, PROJECT, CLIENTS } = process.env;
const url = `http://127.0.0.1:${PORT}/api/projects/${PROJECT}/query/`;
const headers = { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' };
const statuses: Record<string, number> = {};
const latencies: number[] = [];
let isOver = false;

const since = () => new Date(Date.now() - 60_000).toISOString().slice(0, 19).replace('T', ' ');
const QUERIES: readonly ((client: number) => string)[] = [
  () => `select event, count() as times from events where timestamp > '${since()}' group by event`,
  () =>
    `select uuid, event, timestamp from events where timestamp > '${since()}' order by timestamp desc limit 100`,
  (client) =>
    `select event, timestamp from events where timestamp > '${since()}' and distinct_id = 'user-${client}' limit 100`,
  () =>
    `select properties.$pathname as page, count() as times from events where timestamp > '${since()}' group by page order by times desc limit 20`,
  () => `select uniq(person_id) from events where timestamp > '${since()}'`,
];

async function client(number: number): Promise<void> {
  for (let turn = number; !isOver; turn += 1) {
    const query = (QUERIES[turn % QUERIES.length] as (client: number) => string)(number);
    const start = performance.now();
    const body = JSON.stringify({ query: { kind: 'HogQLQuery', query } });
    const answer = await fetch(url, { method: 'POST', headers, body });
    await answer.text();
    statuses[answer.status] = (statuses[answer.status] ?? 0) + 1;
    if (answer.status === 200) latencies.push(performance.now() - start);
    else await pause(Number(answer.headers.get('retry-after') ?? 1) * 1000);
  }
}

for (let number = 0; number < Number(CLIENTS); number += 1) void client(number);
const waiting = setInterval(() => undefined, 1_000);

process.once('SIGTERM', () => {
  isOver = true;
  clearInterval(waiting);
  process.stdout.write(JSON.stringify({ statuses, latencies: latencies.sort((a, b) => a - b) }), () =>
    process.exit(),
  );
});
