import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
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

/** Makes directories one after the other and sees whether each is left alone; or takes those that it may. */
const CODE = `
  const { makeRunDir, takeKilledRuns } = await import(${JSON.stringify(path.resolve(import.meta.dirname, '../support/run-dir.ts'))});
  const { existsSync, rmSync } = await import('node:fs');
  const [, folder, role] = process.argv;
  const remove = (one) => rmSync(one, { recursive: true, force: true, maxRetries: 10 });
  const turn = () => new Promise(setImmediate);
  if (role === 'takes') {
    process.send('ready');
    while (process.connected) {
      for (const one of takeKilledRuns(folder)) remove(one);
      await turn();
    }
  }
  for (let n = 0; n < 2000 && role === 'makes'; n += 1) {
    const made = makeRunDir(folder);
    for (let wait = 0; wait < 5; wait += 1) await turn();
    if (!existsSync(made + '/sluice.lock')) throw new Error('somebody removed what was in use');
    remove(made);
  }
  if (role === 'makes') process.disconnect();
`;

test('two that begin together leave each other alone', async () => {
  const shared = path.join(folder, 'shared');
  mkdirSync(shared);
  const start = (role: string) =>
    spawn(process.execPath, ['--input-type=module', '-e', CODE, shared, role], {
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    });
  const taker = start('takes');
  const taken = once(taker, 'exit');
  await once(taker, 'message');
  const made = await once(start('makes'), 'exit');
  taker.disconnect();
  expect([made, await taken]).toEqual([
    [0, null],
    [0, null],
  ]);
});
