// The yardstick: a bare Fastify route that answers 304 to who knows the text already.
import Fastify from 'fastify';

const app = Fastify();
app.get('/flags/definitions', (request, reply) => {
  const isKnown = request.headers['if-none-match'] === '"known"';
  return reply
    .code(isKnown ? 304 : 200)
    .header('etag', '"known"')
    .send(isKnown ? '' : '{}');
});
await app.listen({ host: '127.0.0.1', port: Number(process.env.PORT) });
process.once('SIGTERM', () => process.exit());
