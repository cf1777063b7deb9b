import { expect, test } from '@jest/globals';
import { similarTo } from '../../../functions/rules/similar.ts';

test('names are similar if they share enough of a word', () => {
  const named = ['Slack notification', 'slick', 'Webhook', ''].map((name) => ({ name }));
  const like = (text: string) => similarTo(text, named).map(({ name }) => name);
  expect(like('slcak')).toEqual(['Slack notification', 'slick']);
  expect(like('webhok')).toEqual(['Webhook']);
  expect(like('   ')).toEqual([]);
  expect(like('zzz')).toEqual([]);
});
