import { expect, test } from '@jest/globals';
import { PersonTurns } from '../../capture/ingest/person-turns.ts';

const keys = (...names: string[]) => new Set(names);
/** Everything that can go on by now has gone on. */
const rest = () => new Promise((resolve) => setImmediate(resolve));

/** Turns at a time when others change persons. */
async function livelyTurns(): Promise<PersonTurns> {
  const turns = new PersonTurns();
  const { turn } = await turns.begin(keys('somebody'));
  turns.settle(turn, keys('somebody'));
  turns.end(turn);
  return turns;
}

async function begun(turns: PersonTurns, names: Set<string>) {
  let isBegun = false;
  const turn = turns.begin(names).then((one) => {
    isBegun = true;
    return one.turn;
  });
  await rest();
  return { turn, isBegun: () => isBegun };
}

test('who names persons that a transaction before changes waits for its end, everybody else does not', async () => {
  const turns = await livelyTurns();
  const { turn: first } = await turns.begin(keys('a', 'b'));
  const second = await begun(turns, keys('b', 'c'));
  const other = await begun(turns, keys('d'));
  expect([second.isBegun(), other.isBegun()]).toEqual([false, true]);

  turns.settle(first, keys('b'));
  await rest();
  expect(second.isBegun()).toBe(false);
  // What is known not to change is nobody's concern.
  expect((await begun(turns, keys('a'))).isBegun()).toBe(true);

  turns.end(first);
  await rest();
  expect(second.isBegun()).toBe(true);
});

test('a transaction that changes nothing, or that fails before it is known, lets the next one go on', async () => {
  const turns = await livelyTurns();
  for (const leave of ['settle', 'end'] as const) {
    const { turn: first } = await turns.begin(keys('a'));
    const second = await begun(turns, keys('a'));
    expect(second.isBegun()).toBe(false);
    if (leave === 'settle') turns.settle(first, keys());
    else turns.end(first);
    await rest();
    expect(second.isBegun()).toBe(true);
    turns.end(first);
    turns.end(await second.turn);
  }
});

test('where nobody changes persons, nobody waits to know what others will do', async () => {
  const turns = new PersonTurns();
  const { turn: first } = await turns.begin(keys('a'));
  expect((await begun(turns, keys('a'))).isBegun()).toBe(true);
  turns.settle(first, keys('a'));
  expect((await begun(turns, keys('a'))).isBegun()).toBe(false);
});
