import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { afterAll, expect, test } from '@jest/globals';
import { makeDataDir } from '../support/data-dir.ts';
import { READY, type SluiceProcess, settingsFor, startSluice } from '../support/sluice.ts';

const root = path.resolve(import.meta.dirname, '../..');
const blocksOf = (document: string) =>
  [...readFileSync(path.join(root, document), 'utf8').matchAll(/```sh\n([\s\S]*?)```/g)].map(
    (match) => match[1] as string,
  );
let sluice: SluiceProcess | undefined;
const folder = mkdtempSync(path.join(tmpdir(), 'sluice-test-readme-'));
afterAll(async () => {
  await sluice?.end('SIGTERM');
  rmSync(folder, { recursive: true });
});

/** The commands that a reader copies after `npm start`, in their order. */
const commands = [
  ...blocksOf('README.md').filter((block) =>
    /^(KEY=|EXPORTS=|FUNCTIONS=|FLAGS=)|sluice (exports|query)/.test(block),
  ),
  ...blocksOf('docs/exports-api.md'),
];

test('what the README and the page of the API say to type does what they say', async () => {
  expect(commands).toHaveLength(7);
  const dataDir = makeDataDir();
  const settings = await settingsFor(dataDir);
  sluice = startSluice(settings);
  await sluice.until(READY);
  // A name without spaces, as the one in the README.
  const here = path.join(folder, 'data');
  symlinkSync(dataDir, here);
  const script = commands
    .join('\n')
    .replaceAll('http://localhost:8000', `http://localhost:${settings.PORT}`)
    .replaceAll('.sluice/', `${here}/`);
  const { NODE_OPTIONS: _ours, ...env } = process.env;
  // A machine that is busy may need longer for the first file than the README says.
  const wait = `for n in $(seq 200); do ls ${here}/exports/@projects/*/lake/*.jsonl >/dev/null 2>&1 && break; sleep 0.2; done;`;
  const ran =
    'for n in $(seq 200); do ask "$FUNCTIONS/$FUNCTION/logs/" | grep -q paid && break; sleep 0.2; done;';
  const captured =
    'for n in $(seq 200); do ask "$(dirname "$FUNCTIONS")/events/?event=large%20order" | grep -q ada && break; sleep 0.2; done;';
  const patient = script.replace('sleep 2;', wait).replace('sleep 3;', `${ran} ${captured}`);
  expect(patient).toContain(wait);
  expect(patient).toContain(captured);
  const { stdout } = await promisify(execFile)('bash', ['-e', '-o', 'pipefail', '-c', patient], {
    cwd: root,
    env: { ...env, ...settings },
  });
  expect(stdout).toContain('{"status":"Ok"}');
  expect(stdout).toContain('"name":"Shop"');
  expect(stdout).toMatch(/\{"uuid":"[^"]+","event":"hello","distinct_id":"me",/);
  expect(stdout).toContain('"body":"{\\"text\\":\\"ada paid 120\\"}"');
  expect(stdout).toContain('"message":"ada, paid, 120"');
  expect(stdout).not.toContain('"message":"ada, paid, 20"');
  expect(stdout).toMatch(/"totals":\{[^}]*"success":1/);
  expect(stdout).toMatch(/"distinct_id":"ada","event":"large order"/);
  expect(stdout).toMatch(/"new-checkout":\{"key":"new-checkout","enabled":(true|false),/);
  expect(stdout).toMatch(/^\{"affected":0,"total":\d+,/m);
  expect(stdout).toMatch(/^order paid +2 +1$/m);
  expect(stdout).toMatch(/ {2}Lake {2}project \d+, events every hour to File: on time; last run Completed/);
  expect(stdout).toMatch(/^same {2}.* {2}4 rows$/m);
  expect(stdout).toMatch(/^Passed: /m);
  expect(stdout).not.toMatch(/^Failed: /m);
  expect(stdout).toContain('{"paused":true}\n{"paused":false}\n{"backfill_id":');
  expect(stdout).toContain('"verdict":"same"');
  expect(stdout).toContain('"compression":"zstd"');
  expect(stdout).not.toMatch(/"type":"(\w+_error|invalid_request)"/);
});
