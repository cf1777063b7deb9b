import { expect, test } from '@jest/globals';
import { NoTurnError, Turns } from '../../db/turns.ts';

/** Resolves when all that can begin has begun. */
const settled = () => new Promise(setImmediate);

/** Asks for turns, and notes which have begun. Each lasts until it is ended. */
function asking(turns: Turns) {
  const begun: string[] = [];
  const ends = new Map<string, () => void>();
  const ask = (projectId: number, name: string, signal?: AbortSignal) =>
    turns.take({ projectId, signal }, () => {
      begun.push(name);
      return new Promise<string>((resolve) => ends.set(name, () => resolve(name)));
    });
  const end = async (name: string) => {
    ends.get(name)?.();
    await settled();
  };
  return { ask, begun, end };
}

test('the next turn goes to the project with the fewest, then to the one that waits longest', async () => {
  const { ask, begun, end } = asking(new Turns({ atOnce: 3, perAsker: 2 }));
  const all = [
    ...['a1', 'a2', 'a3', 'a4'].map((name) => ask(1, name)),
    ...['b1', 'b2'].map((name) => ask(2, name)),
    ask(3, 'c1'),
  ];
  await settled();
  expect(begun).toEqual(['a1', 'a2', 'b1']);
  await end('a1');
  // Project 1 has waited longest, but project 3 has none.
  expect(begun.at(-1)).toBe('c1');
  await end('c1');
  // One each, and both have used as little: the one that has waited longest.
  expect(begun.at(-1)).toBe('a3');
  await end('a2');
  expect(begun.at(-1)).toBe('a4');
  await end('b1');
  expect(begun.at(-1)).toBe('b2');
  for (const name of ['a3', 'a4', 'b2']) await end(name);
  expect(await Promise.all(all)).toHaveLength(7);
});

/** A clock that somebody sets, in milliseconds. */
const clock = () => {
  const one = { at: 0, now: () => one.at };
  return one;
};

test('whoever has used less time lately goes before those who have asked for more, and earlier', async () => {
  const time = clock();
  const { ask, begun, end } = asking(new Turns({ atOnce: 1, now: time.now }));
  const all = ['a1', 'a2', 'a3'].map((name) => ask(1, name));
  await settled();
  time.at += 5_000;
  all.push(ask(2, 'b1'));
  await end('a1');
  expect(begun).toEqual(['a1', 'b1']);
  time.at += 1_000;
  await end('b1');
  expect(begun.at(-1)).toBe('a2');
  // What was used is remembered while nobody asks, and forgotten by and by.
  time.at += 1_000;
  all.push(ask(2, 'b2'));
  await end('a2');
  expect(begun.at(-1)).toBe('b2');
  time.at += 3_600_000;
  await end('b2');
  await end('a3');
  const later = ['b3', 'a4', 'b4'].map((name) => ask(name.startsWith('a') ? 1 : 2, name));
  await settled();
  for (const name of ['b3', 'a4', 'b4']) await end(name);
  expect(begun.slice(-3)).toEqual(['b3', 'a4', 'b4']);
  await Promise.all([...all, ...later]);
});

test('a turn that is kept goes to those who have used little, and never to all the others', async () => {
  const time = clock();
  const { ask, begun, end } = asking(
    new Turns({ atOnce: 2, perAsker: 1, kept: 1, patience: 5, now: time.now }),
  );
  // Nobody has used anything yet.
  const all = [ask(1, 'a1'), ask(2, 'b1')];
  await settled();
  time.at += 20_000;
  await Promise.all(['a1', 'b1'].map(end));
  all.push(ask(1, 'a2'));
  const refused = ask(2, 'b2');
  refused.catch(() => undefined);
  await settled();
  expect(begun).not.toContain('b2');
  await expect(refused).rejects.toMatchObject({ isOwnFault: true });
  all.push(ask(3, 'c1'));
  await settled();
  expect(begun).toEqual(['a1', 'b1', 'a2', 'c1']);
  await end('a2');
  // One turn is free, for others.
  await expect(ask(1, 'a3')).rejects.toBeInstanceOf(NoTurnError);
  await end('c1');
  all.push(ask(2, 'b3'));
  await settled();
  expect(begun.at(-1)).toBe('b3');
  await end('b3');
  await Promise.all(all);
});

test('a project that asks for too much is refused, and only that project', async () => {
  const { ask, begun, end } = asking(new Turns({ atOnce: 2, perAsker: 1, waitingPerAsker: 1 }));
  const kept = [ask(1, 'a1'), ask(1, 'a2')];
  await expect(ask(1, 'a3')).rejects.toMatchObject({ isOwnFault: true });
  kept.push(ask(2, 'b1'));
  await settled();
  expect(begun).toEqual(['a1', 'b1']);
  await end('a1');
  expect(begun).toEqual(['a1', 'b1', 'a2']);
  await end('a2');
  await end('b1');
  await Promise.all(kept);
});

test('a turn that does not come is given up, and says whose fault that is', async () => {
  const { ask, begun, end } = asking(new Turns({ atOnce: 2, perAsker: 1, patience: 5 }));
  const kept = [ask(1, 'a1'), ask(2, 'b1')];
  const [own, others] = await Promise.allSettled([ask(1, 'a2'), ask(3, 'c1')]);
  expect(own).toMatchObject({ status: 'rejected', reason: { isOwnFault: true } });
  expect(others).toMatchObject({ status: 'rejected', reason: { isOwnFault: false } });
  expect((own as PromiseRejectedResult).reason).toBeInstanceOf(NoTurnError);
  await end('a1');
  await end('b1');
  await Promise.all(kept);
  expect(begun).toEqual(['a1', 'b1']);
});

test('who goes away leaves the queue', async () => {
  const { ask, begun, end } = asking(new Turns({ atOnce: 1 }));
  const gone = new AbortController();
  const first = ask(1, 'a1');
  const left = ask(1, 'a2', gone.signal);
  const last = ask(1, 'a3');
  gone.abort(new Error('gone'));
  await expect(left).rejects.toThrow('gone');
  await expect(ask(1, 'a4', gone.signal)).rejects.toThrow('gone');
  await end('a1');
  expect(begun).toEqual(['a1', 'a3']);
  await end('a3');
  await Promise.all([first, last]);
});
