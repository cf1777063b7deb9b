// A peer: posthog-node's own evaluation behind Fastify. It answers values only.
import { readFileSync } from 'node:fs';
import Fastify from 'fastify';
import { PostHog } from 'posthog-node-5';

const definitions = readFileSync(process.env.DEFINITIONS as string, 'utf8');
const client = new PostHog('phc_bench', {
  personalApiKey: 'phx_bench',
  featureFlagsPollingInterval: 1e9,
  // It gets its definitions from here, and nothing else is asked for.
  fetch: async () =>
    new Response(definitions, { status: 200, headers: { 'content-type': 'application/json' } }),
});
await client.reloadFeatureFlags();
const app = Fastify();
app.post('/flags', async (request) => {
  const body = request.body as { distinct_id: string; person_properties?: Record<string, string> };
  const featureFlags = await client.getAllFlags(body.distinct_id, {
    onlyEvaluateLocally: true,
    ...(body.person_properties ? { personProperties: body.person_properties } : {}),
  });
  return { featureFlags };
});
await app.listen({ host: '127.0.0.1', port: Number(process.env.PORT) });
process.once('SIGTERM', () => process.exit());
