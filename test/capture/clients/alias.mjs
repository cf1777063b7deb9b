// A program that gives one person two further ids, one after the other: alias.mjs <package> <host> <project key>
const [name, host, key] = process.argv.slice(2);
const { PostHog } = await import(name);

const client = new PostHog(key, { host, flushAt: 1, flushInterval: 10_000 });
client.on?.('error', (error) => {
  throw error;
});
const flush = () => client.flushAsync?.() ?? client.flush();
for (const distinctId of ['phone', 'tablet', 'ann']) {
  client.capture({ distinctId, event: 'looked', properties: { $set: { [`from ${distinctId}`]: true } } });
  await flush();
}
for (const alias of ['phone', 'tablet']) {
  client.alias({ distinctId: 'ann', alias });
  await flush();
}
await (client.shutdownAsync?.() ?? client.shutdown());
