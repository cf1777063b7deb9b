import { expect, test } from '@jest/globals';
import { tellWaits } from '../../exports/runs/waiting.ts';
import { eventually } from '../support/eventually.ts';

const HOUR = 3_600_000;

/** An attempt that tells what it waits for after so many milliseconds, and what it told. */
function waiting(after: number) {
  const told: (string | null)[] = [];
  const heard: string[] = [];
  const attempt = tellWaits(
    {
      signal: new AbortController().signal,
      fence: async () => undefined,
      onProgress: () => heard.push('progress'),
      moved: () => heard.push('moved'),
      close: async () => void heard.push('closed'),
    },
    { after, say: async (waitsFor) => void told.push(waitsFor) },
  );
  const hasTold = (...expected: (string | null)[]) =>
    eventually(async () => JSON.stringify(told) === JSON.stringify(expected));
  return { attempt, told, heard, hasTold };
}

test('an attempt tells what it waits for longest, once, and when that is over', async () => {
  const { attempt, told, hasTold } = waiting(1);
  const over = attempt.onWait('the first');
  attempt.onWait('the second');
  await hasTold('the first');
  over();
  await hasTold('the first', 'the second');
  attempt.onProgress(1, 100);
  await attempt.close();
  expect(told).toEqual(['the first', 'the second', null]);
});

test('rows and bytes move it; that it is alive does not', async () => {
  const { attempt, told, heard, hasTold } = waiting(1);
  attempt.onWait('a server');
  await hasTold('a server');
  attempt.stillWaits();
  attempt.stillWaits();
  expect(heard).toEqual(['moved', 'moved']);
  await attempt.quiet();
  expect(told).toEqual(['a server']);
});

test('it tells nothing before its time, nor when it waits for nothing', async () => {
  const early = waiting(HOUR);
  early.attempt.onWait('a server');
  const idle = waiting(1);
  idle.attempt.onWait('a server')();
  const other = waiting(1);
  other.attempt.onWait('another server');
  await other.hasTold('another server');
  expect([early.told, idle.told]).toEqual([[], []]);
  for (const { attempt } of [early, idle, other]) await attempt.close();
});

test('it tells nothing any more when it is quiet', async () => {
  const { attempt, told, heard, hasTold } = waiting(1);
  attempt.onWait('a server');
  await hasTold('a server');
  await attempt.close();
  attempt.moved();
  attempt.onWait('another server');
  await attempt.quiet();
  expect(told).toEqual(['a server']);
  expect(heard).toEqual(['closed', 'moved']);
});
