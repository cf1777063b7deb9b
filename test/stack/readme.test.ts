import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { afterAll, expect, test } from '@jest/globals';
import { makeDataDir } from '../support/data-dir.ts';
import { READY, type SluiceProcess, settingsFor, startSluice } from '../support/sluice.ts';

const root = path.resolve(import.meta.dirname, '../..');
const readme = readFileSync(path.join(root, 'README.md'), 'utf8');
let sluice: SluiceProcess | undefined;
const folder = mkdtempSync(path.join(tmpdir(), 'sluice-test-readme-'));
afterAll(async () => {
  await sluice?.end('SIGTERM');
  rmSync(folder, { recursive: true });
});

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
  // A name without spaces, as the one in the README.
  const here = path.join(folder, 'data');
  symlinkSync(dataDir, here);
  const script = commands
    .join('\n')
    .replaceAll('http://localhost:8000', `http://localhost:${settings.PORT}`)
    .replaceAll('.sluice/', `${here}/`);
  const { NODE_OPTIONS: _ours, ...env } = process.env;
  // A machine that is busy may need longer for the first file than the README says.
  const wait = `for n in $(seq 200); do ls ${here}/exports/lake/*.jsonl >/dev/null 2>&1 && break; sleep 0.2; done;`;
  const patient = script.replace('sleep 2;', wait);
  expect(patient).not.toBe(script);
  const { stdout } = await promisify(execFile)('bash', ['-e', '-o', 'pipefail', '-c', patient], {
    cwd: root,
    env: { ...env, ...settings },
  });
  expect(stdout).toContain('{"status":"Ok"}');
  expect(stdout).toContain('"name":"Shop"');
  expect(stdout).toMatch(/\{"uuid":"[^"]+","event":"hello","distinct_id":"me",/);
  expect(stdout).toMatch(/ {2}Lake {2}project \d+, events every hour to File: on time; last run Completed/);
  expect(stdout).toMatch(/^same {2}.* {2}1 row$/m);
});
