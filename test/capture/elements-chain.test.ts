import { expect, test } from '@jest/globals';
import { parseElementsChain } from '../../capture/elements-chain.ts';

const nothing = {
  event: null,
  text: null,
  attr_class: null,
  href: null,
  attr_id: null,
  nth_child: null,
  nth_of_type: null,
  attributes: {},
};

test.each([
  ['', []],
  ['div', [{ ...nothing, tag_name: 'div', order: 0 }]],
  [
    'a.btn.btn-primary:attr__data-x="1"attr_id="buy"href="/x;y?a=b:c"nth-child="2"nth-of-type="3"text="Say \\"hi\\"; now";div:nth-child="1"text="";body.',
    [
      {
        ...nothing,
        tag_name: 'a',
        attr_class: ['btn', 'btn-primary'],
        attr_id: 'buy',
        href: '/x;y?a=b:c',
        nth_child: 2,
        nth_of_type: 3,
        text: 'Say "hi"; now',
        attributes: { 'attr__data-x': '1' },
        order: 0,
      },
      { ...nothing, tag_name: 'div', nth_child: 1, text: '', order: 1 },
      { ...nothing, tag_name: 'body', order: 2 },
    ],
  ],
  ['a:nth-child="many"', [{ ...nothing, tag_name: 'a', order: 0 }]],
])('the chain %j', (chain, elements) => {
  expect(parseElementsChain(chain)).toEqual(elements);
});

test('a long hostile chain is parsed in no time worth mentioning', () => {
  // Would take minutes with a pattern that tries every way to part it.
  expect(parseElementsChain('a:'.concat('"\\'.repeat(20_000))).length).toBeGreaterThanOrEqual(0);
  expect(parseElementsChain('='.repeat(20_000))).toHaveLength(1);
});
