// A program that uses posthog-node as its readers would: node.mjs <package> <host> <project key>
const [name, host, key] = process.argv.slice(2);
const { PostHog } = await import(name);
const timestamp = new Date('2026-01-02T03:04:05.678Z');

const client = new PostHog(key, { host, flushAt: 20, flushInterval: 10_000 });
client.on?.('error', (error) => {
  throw error;
});
client.capture({
  distinctId: 'ann',
  event: 'signed up',
  properties: { plan: 'pro', $set: { name: 'Ann' }, $set_once: { first_plan: 'pro' } },
  timestamp,
});
client.identify({ distinctId: 'ann', properties: { email: 'ann@example.com' } });
client.alias({ distinctId: 'ann', alias: 'anonymous-1' });
client.groupIdentify({ groupType: 'company', groupKey: 'acme', properties: { seats: 5 } });
client.capture({ distinctId: 'ann', event: 'report opened', groups: { company: 'acme' }, timestamp });
client.capture({
  distinctId: 'visitor',
  event: 'looked',
  properties: { $process_person_profile: false },
  timestamp,
});
await (client.shutdownAsync?.() ?? client.shutdown());

const importer = new PostHog(key, { host, historicalMigration: true });
importer.capture({ distinctId: 'ann', event: 'imported', timestamp: new Date('2020-01-02T03:04:05Z') });
await (importer.shutdownAsync?.() ?? importer.shutdown());
