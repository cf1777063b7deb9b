import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, expect, test } from '@jest/globals';
import { STATE_PREFIX } from '../support/names.ts';
import { makeRunDir, takeKilledRuns } from '../support/run-dir.ts';

const folder = mkdtempSync(path.join(tmpdir(), 'sluice-run-dirs-'));
afterAll(() => rmSync(folder, { recursive: true }));

test('a run that begins takes nothing that another one has begun, and all that killed ones left', async () => {
  const mine = makeRunDir(folder);
  expect(path.basename(mine).startsWith(STATE_PREFIX)).toBe(true);
  expect(existsSync(mine)).toBe(true);
  const killed = path.join(folder, `${STATE_PREFIX}killed`);
  mkdirSync(killed);
  expect(takeKilledRuns(folder)).toEqual([killed]);
  expect(takeKilledRuns(folder)).toEqual([]);
});

/** Makes directories, or takes those that it may, for as long as it is left to. */
const CODE = `
  const { makeRunDir, takeKilledRuns } = await import(${JSON.stringify(path.resolve(import.meta.dirname, '../support/run-dir.ts'))});
  const { rmSync } = await import('node:fs');
  const [, folder, role] = process.argv;
  if (role === 'makes') for (let n = 0; n < 300; n += 1) makeRunDir(folder);
  else while (process.connected) {
    for (const one of takeKilledRuns(folder)) rmSync(one, { recursive: true, force: true, maxRetries: 10 });
    await new Promise(setImmediate);
  }
  if (role === 'makes') { process.send('made'); await new Promise((resolve) => process.once('disconnect', resolve)); }
`;

test('two that begin together leave each other alone', async () => {
  const shared = path.join(folder, 'shared');
  mkdirSync(shared);
  const start = (role: string) =>
    spawn(process.execPath, ['--input-type=module', '-e', CODE, shared, role], {
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    });
  const [taker, maker] = [start('takes'), start('makes')];
  const ended = [once(taker, 'exit'), once(maker, 'exit')];
  await once(maker, 'message');
  expect(readdirSync(shared)).toHaveLength(300);
  taker.disconnect();
  maker.disconnect();
  expect(await Promise.all(ended)).toEqual([
    [0, null],
    [0, null],
  ]);
});
