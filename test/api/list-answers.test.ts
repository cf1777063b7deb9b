import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import Fastify from 'fastify';
import { serializerCompiler } from 'fastify-type-provider-zod';
import { z } from 'zod';
import { writeListsInPieces } from '../../api/list-answers.ts';
import { page } from '../../api/pagination.ts';
import { turnsDuring } from '../support/loop.ts';

const app = Fastify();
let answer: object = {};
const result = z.object({ id: z.int(), text: z.unknown() });
beforeAll(async () => {
  app.setSerializerCompiler(serializerCompiler);
  writeListsInPieces(app);
  app.get('/page', { schema: { response: { 200: page(result) } } }, () => answer);
  app.get('/bare', { schema: { response: { 200: z.object({ results: z.array(result) }) } } }, () => answer);
  app.get('/array', { schema: { response: { 200: z.array(result) } } }, () => answer);
  app.get(
    '/refused',
    { schema: { response: { 200: page(result), 400: z.object({ detail: z.string() }) } } },
    (_, reply) => {
      reply.code(400);
      return { detail: 'no' };
    },
  );
  await app.ready();
});
afterAll(() => app.close());
const get = (url: string) => app.inject({ url });
const results = (count: number, text: unknown) =>
  Array.from({ length: count }, (_, id) => ({ id, text, hidden: 'what the schema does not name' }));
const head = { count: 3, next: null, previous: 'before "this"' };

describe('the answer of a list', () => {
  test.each([
    ['of none', 0, ''],
    ['of one', 1, 'x'],
    ['of more than a piece', 3, 'ü'.repeat(100_000)],
  ])('%s has what its schema names', async (_, count, text) => {
    answer = { ...head, results: results(count, text), hidden: 1 };
    const { headers, statusCode, body } = await get('/page');
    expect([statusCode, headers['content-type']]).toEqual([200, 'application/json; charset=utf-8']);
    expect(headers['content-length']).toBe(String(Buffer.byteLength(body)));
    const expected = Array.from({ length: count }, (_, id) => ({ id, text }));
    expect(JSON.parse(body)).toEqual({ ...head, results: expected });
    expect(JSON.parse((await get('/bare')).body)).toEqual({ results: expected });
    answer = results(count, text);
    expect(JSON.parse((await get('/array')).body)).toEqual(expected);
  });

  test('leaves others their turn between results', async () => {
    const slow = {
      toJSON() {
        for (const end = performance.now() + 10; performance.now() < end; );
        return 'slow';
      },
    };
    answer = { ...head, results: results(20, slow) };
    expect(await turnsDuring(() => get('/page'))).toBeGreaterThan(15);
  });

  test('fails as a whole if a result is not what its schema says', async () => {
    answer = { ...head, results: [...results(2, 'x'.repeat(200_000)), { id: 'three' }] };
    expect((await get('/page')).statusCode).toBe(500);
  });

  test('that refuses a request is none', async () => {
    const { statusCode, body } = await get('/refused');
    expect([statusCode, body]).toEqual([400, '{"detail":"no"}']);
  });
});
