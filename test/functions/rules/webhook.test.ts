import { expect, jest, test } from '@jest/globals';
import { seenRequest } from '../../../functions/rules/webhook.ts';

const seen = (body: string, contentType = 'application/json') =>
  seenRequest({
    ...{ method: 'POST', headers: { 'content-type': contentType }, query: {}, ip: undefined },
    body: Buffer.from(body),
  }).body;

test('a body that nests too deep is refused before it is parsed', () => {
  const parse = jest.spyOn(JSON, 'parse');
  const deep = '['.repeat(250_000) + ']'.repeat(250_000);
  expect(() => seen(deep)).toThrow('The body nests deeper than 200 levels.');
  expect(parse).not.toHaveBeenCalled();
  parse.mockRestore();
  expect(seen('['.repeat(200) + ']'.repeat(200))).toEqual([expect.anything()]);
  expect(seen('[[[', 'text/plain')).toBe('[[[');
});
