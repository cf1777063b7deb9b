// The yardstick: a bare Fastify route that parses the body and answers the same bytes as Sluice does for one user.
import { readFileSync } from 'node:fs';
import Fastify from 'fastify';

const answer = readFileSync(process.env.ANSWER as string, 'utf8');
const app = Fastify();
app.post('/flags', (request, reply) => {
  if (typeof (request.body as { distinct_id?: unknown }).distinct_id !== 'string') throw new Error('no id');
  return reply.header('content-type', 'application/json; charset=utf-8').send(answer);
});
await app.listen({ host: '127.0.0.1', port: Number(process.env.PORT) });
process.once('SIGTERM', () => process.exit());
