// Other queues that make the same requests, as processes of their own. `KIND=bullmq` needs `REDIS_PORT`, `KIND=graphile`
// needs `DATABASE_URL`. Prints how long it took once everything was in the queue.
import { Agent, request } from 'undici';

const { KIND, TARGET, COUNT, PLACES, REDIS_PORT, DATABASE_URL } = process.env;
const count = Number(COUNT);
const places = Number(PLACES);
const agent = new Agent({ connections: places });
const send = async (body) => {
  const answer = await request(TARGET, {
    ...{ dispatcher: agent, method: 'POST', body, headers: { 'content-type': 'application/json' } },
  });
  await answer.body.text();
  return { status: answer.statusCode };
};
const bodyOf = (id) => ({ id, text: 'x'.repeat(980) });
const AT_ONCE = 1_000;
let left = count;
let begun;
let done;
const finished = new Promise((resolve) => {
  done = resolve;
});
const one = async (body) => {
  begun ??= performance.now();
  const result = await send(JSON.stringify(body));
  return result;
};
const ended = () => {
  left -= 1;
  if (left === 0) done();
};

if (KIND === 'bullmq') {
  const { Queue, Worker } = await import('bullmq');
  const { Redis } = await import('ioredis');
  const connect = () => new Redis(Number(REDIS_PORT), '127.0.0.1', { maxRetriesPerRequest: null });
  const queue = new Queue('requests', { connection: connect() });
  for (let at = 0; at < count; at += AT_ONCE) {
    const jobs = Array.from({ length: Math.min(AT_ONCE, count - at) }, (_, index) => ({
      name: 'request',
      data: bodyOf(at + index),
    }));
    await queue.addBulk(jobs);
  }
  const worker = new Worker('requests', (job) => one(job.data), {
    ...{ connection: connect(), concurrency: places },
  });
  worker.on('completed', ended);
  await finished;
} else {
  const { makeWorkerUtils, run } = await import('graphile-worker');
  const utils = await makeWorkerUtils({ connectionString: DATABASE_URL });
  await utils.migrate();
  await utils.withPgClient((client) =>
    client.query(
      `select graphile_worker.add_jobs((select array_agg(('request', json_build_object('id', n, 'text', repeat('x', 980)),
         null, null, null, null, null, null)::graphile_worker.job_spec) from generate_series(1, $1::int) n))`,
      [count],
    ),
  );
  const runner = await run({
    taskList: { request: (payload) => one(payload) },
    preset: {
      worker: {
        ...{ connectionString: DATABASE_URL, concurrentJobs: places, maxPoolSize: 16 },
        // What makes it fastest: jobs are claimed and completed many at a time.
        ...{ localQueue: { size: places * 2 }, completeJobBatchDelay: 0, failJobBatchDelay: 0 },
        noHandleSignals: true,
      },
    },
  });
  runner.events.on('job:success', ended);
  await finished;
}
const { user, system } = process.cpuUsage();
console.log(JSON.stringify({ seconds: (performance.now() - begun) / 1_000, cpu: (user + system) / 1e6 }));
process.exit(0);
