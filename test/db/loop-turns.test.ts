import { expect, test } from '@jest/globals';
import { mapInTurns, nextTurn, requestArrived } from '../../db/loop-turns.ts';
import { turnsDuring } from '../support/loop.ts';

/** Keeps the thread busy. */
function work(milliseconds: number): void {
  for (const end = performance.now() + milliseconds; performance.now() < end; );
}

test('long works take turns, one piece in each turn of the event loop', async () => {
  const done: string[] = [];
  const longWork = async (name: string, pieces: number) => {
    for (let n = 0; n < pieces; n += 1) {
      await nextTurn();
      done.push(name);
    }
  };
  const all = Promise.all([longWork('a', 3), longWork('b', 2)]);
  let turns = 0;
  const count = () => {
    turns += 1;
    if (done.length < 5) setImmediate(count);
  };
  setImmediate(count);
  await all;
  expect(done).toEqual(['a', 'b', 'a', 'b', 'a']);
  expect(turns).toBeGreaterThanOrEqual(4);
});

test.each([
  ['as much time if requests came meanwhile', true, ['piece', 'other', 'piece']],
  ['no time if none came', false, ['piece', 'piece']],
])('after a long piece, others have %s', async (_, came, expected) => {
  const done: string[] = [];
  await nextTurn();
  done.push('piece');
  if (came) requestArrived();
  work(60);
  const other = setTimeout(() => done.push('other'), came ? 1 : 60_000);
  await nextTurn();
  done.push('piece');
  clearTimeout(other);
  expect(done).toEqual(expected);
});

test('what is made of many items leaves others their turn', async () => {
  const items = Array.from({ length: 20 }, (_, index) => index);
  const double = (index: number) => {
    work(10);
    return index * 2;
  };
  let made: number[] = [];
  const turns = await turnsDuring(async () => {
    made = await mapInTurns(items, double);
  });
  expect(made).toEqual(items.map((index) => index * 2));
  expect(turns).toBeGreaterThan(15);
});
