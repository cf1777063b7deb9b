import { expect, test } from '@jest/globals';
import { elementsChainOf, parseElementsChain } from '../../capture/elements-chain.ts';

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

test('a list of elements is written as a chain that reads back', () => {
  const chain = elementsChainOf([
    {
      tag_name: 'a',
      $el_text: 'Say "hi"; now',
      attr__class: 'btn-primary  btn',
      attr__href: '/x;y?a=b:c',
      attr__id: 'buy',
      'attr__data-x': 1,
      nth_child: 2,
      nth_of_type: 3,
      odd: { left: 'out' },
    },
    { tag_name: 'div', attr__class: ['one', 'two'], $el_text: null, attr__style: {} },
    null,
    'text',
  ]);
  expect(chain).toBe(
    'a.btn.btn-primary:attr__class="btn-primary  btn"attr__data-x="1"attr__href="/x;y?a=b:c"attr__id="buy"' +
      'attr_id="buy"href="/x;y?a=b:c"nth-child="2"nth-of-type="3"text="Say \\"hi\\"; now";' +
      'div.one.two:nth-child="0"nth-of-type="0"',
  );
  expect(parseElementsChain(chain)).toMatchObject([
    { tag_name: 'a', text: 'Say "hi"; now', href: '/x;y?a=b:c', attr_class: ['btn', 'btn-primary'] },
    { tag_name: 'div', attr_class: ['one', 'two'], text: null, nth_child: 0 },
  ]);
  expect(elementsChainOf([{}])).toBe(':nth-child="0"nth-of-type="0"');
  expect(elementsChainOf([{ tag_name: 'p', $el_text: '\u{1f600}'.repeat(300) }]).isWellFormed()).toBe(true);
  expect(elementsChainOf([{ tag_name: 'p', $el_text: `x${'\u{1f600}'.repeat(300)}` }]).isWellFormed()).toBe(
    true,
  );
});
