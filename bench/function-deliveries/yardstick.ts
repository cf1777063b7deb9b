// The yardsticks, as processes of their own. `KIND=bare` only makes requests. `KIND=row` takes one row of a queue in a
// transaction, makes its request, and deletes it, as simple queues do.
import pg from 'pg';
import { Agent, request } from 'undici';

const { KIND, TARGET = '', COUNT = '0', PLACES = '0', DATABASE_URL } = process.env;
const agent = new Agent({ connections: Number(PLACES) });
const send = async (body: string) => {
  const answer = await request(TARGET, {
    ...{ dispatcher: agent, method: 'POST', body, headers: { 'content-type': 'application/json' } },
  });
  await answer.body.text();
};
const body = JSON.stringify({ id: 1, text: 'x'.repeat(980) });
let left = Number(COUNT);
const began = performance.now();
if (KIND === 'bare') {
  await Promise.all(
    Array.from({ length: Number(PLACES) }, async () => {
      while (left > 0) {
        left -= 1;
        await send(body);
      }
    }),
  );
} else {
  // More connections than this make it slower.
  const pool = new pg.Pool({ connectionString: DATABASE_URL as string, max: 32 });
  await Promise.all(
    Array.from({ length: 32 }, async () => {
      for (;;) {
        const client = await pool.connect();
        try {
          await client.query('begin');
          const { rows } = await client.query(
            'select id, body from bench_queue order by id limit 1 for update skip locked',
          );
          if (!rows[0]) return;
          await send(rows[0].body);
          await client.query('delete from bench_queue where id = $1', [rows[0].id]);
          await client.query('insert into bench_done (id, status) values ($1, 200)', [rows[0].id]);
          await client.query('commit');
        } finally {
          await client.query('rollback');
          client.release();
        }
      }
    }),
  );
  await pool.end();
}
const { user, system } = process.cpuUsage();
console.log(JSON.stringify({ seconds: (performance.now() - began) / 1_000, cpu: (user + system) / 1e6 }));
await agent.close();
