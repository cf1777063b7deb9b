import { appendFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from '@jest/globals';
import { watchDatabase } from '../../stack/temporal/database-watch.ts';
import { makeDataDir } from '../support/data-dir.ts';
import { eventually } from '../support/eventually.ts';

const LINE = '{"level":"ERROR","error":"GetNamespace operation failed. Error interrupted (9)"}\n';

/** A Temporal whose log and answers the test decides. */
function watched(isInterrupted: () => boolean) {
  const logFile = path.join(makeDataDir(), 'temporal.log');
  // What an earlier process has said is of no interest.
  writeFileSync(logFile, LINE);
  const exited = Promise.withResolvers<{ code: number; signal: null }>();
  const seen = {
    asked: 0,
    stopped: 0,
    reported: [] as string[],
    logFile,
    end: () => exited.resolve({ code: 0, signal: null }),
  };
  watchDatabase({
    ...{ logFile, lookEvery: 10, report: (line) => void seen.reported.push(line) },
    service: {
      exited: exited.promise,
      async stop() {
        seen.stopped += 1;
        seen.end();
      },
    },
    async isInterrupted() {
      seen.asked += 1;
      return isInterrupted();
    },
  });
  return seen;
}

test('a Temporal whose database stays interrupted is ended, once', async () => {
  const seen = watched(() => true);
  appendFileSync(seen.logFile, LINE.repeat(1_000));
  await eventually(async () => seen.stopped > 0);
  appendFileSync(seen.logFile, LINE);
  expect(seen).toMatchObject({
    asked: 2,
    stopped: 1,
    reported: [expect.stringContaining('stays interrupted')],
  });
});

test('a statement that was interrupted alone changes nothing', async () => {
  let answers = [true, false, false];
  const seen = watched(() => answers.shift() ?? true);
  appendFileSync(seen.logFile, LINE);
  await eventually(async () => seen.asked === 2);
  appendFileSync(seen.logFile, LINE);
  await eventually(async () => seen.asked === 3);
  expect(seen.stopped).toBe(0);
  answers = [false];
  appendFileSync(seen.logFile, 'something else\n');
  // The next line with the fault is read after the other one.
  appendFileSync(seen.logFile, LINE);
  await eventually(async () => seen.asked === 4);
  expect(seen).toMatchObject({ stopped: 0, reported: [] });
  seen.end();
});
