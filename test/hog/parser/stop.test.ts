import { afterAll, expect, test } from '@jest/globals';
import { createParser, stoppable } from '../../../hog/parser/index.ts';

// With one thread and all the time in the world, nothing else frees the thread.
const parser = createParser({ workers: 1, timeoutMs: 3_600_000 });
afterAll(() => parser.close());

/** An expression whose reading takes longer than anybody waits. */
function endless(name: string): string {
  let text = name;
  for (let n = 0; n < 8; n += 1) text = `if(${text} = 1, (${text}), 2)`;
  return text;
}

test('a text that nobody waits for frees its thread, and one in the queue leaves it', async () => {
  const gone = new AbortController();
  const { expression } = stoppable(parser, gone.signal);
  const all = Promise.allSettled([expression(endless('a')), expression(endless('b'))]);
  const waiting = parser.expression('1 + 1');
  gone.abort(new Error('gone'));
  expect((await all).map((one) => one.status === 'rejected' && one.reason.message)).toEqual(['gone', 'gone']);
  expect(await waiting).toMatchObject({ kind: 'arithmetic' });
  await expect(expression('2 + 2')).rejects.toThrow('gone');
});

test('a text that two wait for is read for the one who stays', async () => {
  const gone = new AbortController();
  const stays = new AbortController();
  const [first, second] = [
    parser.expression('properties.a = 1', gone.signal),
    parser.expression('properties.a = 1', stays.signal),
  ];
  gone.abort(new Error('gone'));
  await expect(first).rejects.toThrow('gone');
  expect(await second).toMatchObject({ kind: 'compare' });
});

test('a text that was given up is read anew', async () => {
  const gone = new AbortController();
  const first = parser.expression('properties.b = 1', gone.signal);
  gone.abort(new Error('gone'));
  const second = parser.expression('properties.b = 1');
  await expect(first).rejects.toThrow('gone');
  expect(await second).toMatchObject({ kind: 'compare' });
});
