import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import { afterAll, expect, test } from '@jest/globals';
import { makeDataDir } from '../support/data-dir.ts';
import { READY, type SluiceProcess, settingsFor, startSluice } from '../support/sluice.ts';

const root = path.resolve(import.meta.dirname, '../..');
const readme = readFileSync(path.join(root, 'README.md'), 'utf8');
let sluice: SluiceProcess | undefined;
afterAll(() => sluice?.end('SIGTERM'));

/** The commands that a reader copies after `npm start`, in their order. */
const commands = [...readme.matchAll(/```sh\n([\s\S]*?)```/g)]
  .map((match) => match[1] as string)
  .filter((block) => /^(KEY=|EXPORTS=)|sluice exports/.test(block));

test('what the README says to type does what it says', async () => {
  expect(commands).toHaveLength(3);
  const dataDir = makeDataDir();
  const settings = await settingsFor(dataDir);
  sluice = startSluice(settings);
  await sluice.until(READY);
  const script = commands
    .join('\n')
    .replaceAll('http://localhost:8000', `http://localhost:${settings.PORT}`)
    .replaceAll('.sluice/', `${dataDir}/`);
  const { NODE_OPTIONS: _ours, ...env } = process.env;
  // A machine that is busy may need longer than the README says for the first file.
  const patient = script.replace(
    'sleep 2;',
    `until ls ${dataDir}/exports/lake/*.jsonl >/dev/null 2>&1; do sleep 0.2; done;`,
  );
  expect(patient).not.toBe(script);
  const { stdout } = await promisify(execFile)('bash', ['-e', '-o', 'pipefail', '-c', patient], {
    cwd: root,
    env: { ...env, ...settings },
    timeout: 120_000,
  });
  expect(stdout).toContain('{"status":"Ok"}');
  expect(stdout).toContain('"name":"Shop"');
  expect(stdout).toMatch(/^\{"uuid":"[^"]+","event":"hello","distinct_id":"me",/m);
  expect(stdout).toMatch(/ {2}Lake {2}project \d+, events every hour to File: on time; last run Completed/);
  expect(stdout).toMatch(/^same {2}.* {2}1 row$/m);
});
