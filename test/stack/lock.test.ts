import { readdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { lockInstance, tryLock } from '../../stack/file-lock.ts';
import { processStart } from '../../stack/process.ts';
import { makeDataDir } from '../support/data-dir.ts';
import { killNow, messageOf, run } from './programs/run.ts';

describe('the lock of a data directory', () => {
  test('names the process that has it, and is free again after its release', () => {
    const dataDir = makeDataDir();
    const lock = lockInstance(dataDir);
    expect(() => lockInstance(dataDir)).toThrow(
      `Sluice is already running with this data directory (process ${process.pid}).`,
    );
    lock.release();
    lockInstance(dataDir).release();
    expect(readdirSync(dataDir)).toEqual([]);
  });

  test.each([
    ['a process that was killed', undefined],
    ['a file that was cut off', '{"pid":'],
    ['an empty file', ''],
    ['a number that another program has now', JSON.stringify({ pid: 1, started: 'long ago', token: 'x' })],
  ])('is taken over from %s', async (_name, content) => {
    const dataDir = makeDataDir();
    const file = path.join(dataDir, 'sluice.lock');
    if (content === undefined) {
      const owner = run('take-lock.ts');
      await messageOf(owner);
      owner.send(file);
      expect(await messageOf(owner)).toEqual({ taken: true });
      expect(() => lockInstance(dataDir)).toThrow(`(process ${owner.pid})`);
      await killNow(owner);
    } else writeFileSync(file, content);
    const lock = lockInstance(dataDir);
    expect(tryLock(file).heldBy).toBe(process.pid);
    lock.release();
    expect(readdirSync(dataDir)).toEqual([]);
  });

  test('of many that find a dead owner at once, one gets it', async () => {
    const contenders = Array.from({ length: 6 }, () => run('take-lock.ts'));
    await Promise.all(contenders.map(messageOf));
    for (let round = 0; round < 20; round += 1) {
      const file = path.join(makeDataDir(), 'sluice.lock');
      const dead = { pid: process.pid, started: `${processStart(process.pid)}0`, token: 'dead' };
      writeFileSync(file, JSON.stringify(dead));
      const answers = contenders.map((one) => messageOf<{ taken: boolean }>(one));
      for (const one of contenders) one.send(file);
      const taken = (await Promise.all(answers)).filter((answer) => answer.taken);
      expect(taken).toHaveLength(1);
    }
    for (const one of contenders) one.disconnect();
  });
});
