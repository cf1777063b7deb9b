import { expect, test } from '@jest/globals';
import { createRemembered } from '../../api/public/remembered.ts';
import type { Subscriber } from '../../db/listen.ts';

function setUp(options: { mostKept?: number } = {}) {
  let subscriber: Subscriber | undefined;
  const state = { listening: true, now: 0, reads: [] as string[], version: 1, gate: Promise.resolve() };
  const remembered = createRemembered<string>({
    channel: 'x',
    listener: {
      subscribe: (_channel, given) => {
        subscriber = given;
        return () => undefined;
      },
      isListening: () => state.listening,
    },
    now: () => state.now,
    read: async (key) => {
      state.reads.push(key);
      const value = `${key}${state.version}`;
      await state.gate;
      return key.startsWith('no') ? undefined : { value, bytes: 1_000 };
    },
    ...options,
  });
  return {
    state,
    remembered,
    tell: (key: string) => subscriber?.told(key),
    miss: () => subscriber?.missed(),
  };
}

test('a key is read once, by many together, and again after a change', async () => {
  const { state, remembered, tell } = setUp();
  expect(await Promise.all([remembered.of('a'), remembered.of('a')])).toEqual(['a1', 'a1']);
  expect(remembered.of('a')).toBe('a1');
  expect(state.reads).toEqual(['a']);
  state.version = 2;
  tell('a');
  expect(remembered.knows('a')).toBe(true);
  expect(await remembered.of('a')).toBe('a2');
  await remembered.of('no');
  tell('no');
  expect(remembered.knows('no')).toBe(false);
});

test('an answer that is older than a change is not remembered', async () => {
  const { state, remembered, tell } = setUp();
  const { promise, resolve } = Promise.withResolvers<void>();
  state.gate = promise;
  const early = remembered.of('a');
  state.version = 2;
  tell('a');
  state.gate = Promise.resolve();
  expect(await remembered.of('a')).toBe('a2');
  resolve();
  expect(await early).toBe('a1');
  expect(remembered.of('a')).toBe('a2');
});

test('what nobody asks for goes when there is no room, and what is absent takes none of it', async () => {
  const { state, remembered } = setUp({ mostKept: 4_500 });
  for (const key of ['a', 'b', 'c']) await remembered.of(key);
  void remembered.of('a');
  for (let number = 0; number < 12_000; number += 1) await remembered.of(`no${number}`);
  await remembered.of('d');
  expect(['a', 'b', 'c', 'd'].map(remembered.knows)).toEqual([true, false, true, true]);
  expect([remembered.knows('no0'), remembered.knows('no11999')]).toEqual([false, true]);
  state.reads.length = 0;
  expect(await remembered.of('no11999')).toBeUndefined();
  expect(state.reads).toEqual([]);
});

test('while nothing is heard, what is known is asked for again after a few seconds, and after a break at once', async () => {
  const { state, remembered, miss } = setUp();
  await remembered.of('a');
  state.version = 2;
  state.listening = false;
  expect(await remembered.of('a')).toBe('a1');
  state.now = 6_000;
  expect(await remembered.of('a')).toBe('a2');
  state.listening = true;
  state.version = 3;
  miss();
  expect(await remembered.of('a')).toBe('a3');
});
