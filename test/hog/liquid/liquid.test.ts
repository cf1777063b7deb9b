import { describe, expect, test } from '@jest/globals';
import { LiquidError, renderLiquid } from '../../../hog/liquid/index.ts';

const now = new Date('2024-02-29T12:30:00Z');
const globals = {
  person: { name: 'Ada <b>', properties: { list: [1, 2, 3] } },
  event: { event: '$pageview' },
};
const render = (template: string, limits = {}) => renderLiquid(template, globals, { now, limits });

describe('a Liquid template', () => {
  test.each([
    ['Hello {{ person.name }}', 'Hello Ada &lt;b&gt;'],
    ['{{ person.name | raw }}', 'Ada <b>'],
    ['{% for n in person.properties.list %}{{ n }},{% endfor %}', '1,2,3,'],
    ['{% if event.event == "$pageview" %}yes{% else %}no{% endif %}', 'yes'],
    ["{{ now | date: '%Y-%m-%d', 'UTC' }}", '2024-02-29'],
    ['{{ missing.name | default: &quot;you&quot; }} &quot;', 'you &quot;'],
    ['{% if 1 &lt; 2 and 3 &#62; 2 %}a &amp; b{% endif %}', 'a &amp; b'],
    ['{{ missing }}|{{ person.properties.list.size }}', '|3'],
    ['{{ unclosed', null],
  ])('%s', (template, expected) => {
    if (expected === null) expect(() => render(template)).toThrow(LiquidError);
    else expect(render(template)).toBe(expected);
  });

  test.each([
    '{{ person.constructor }}',
    '{{ person.constructor.name }}',
    '{{ person.__proto__ }}',
    '{{ person["__proto__"].toString }}',
    '{{ person.toString }}',
    '{{ person.properties.list.map }}',
    '{{ person.name.charAt }}{{ now.getTime }}',
    '{{ constructor }}{{ __proto__ }}{{ process }}{{ globalThis }}',
    "{% assign x = 'constructor' %}{{ person[x] }}",
  ])('reaches nothing of JavaScript: %s', (template) => {
    expect(render(template)).toBe('');
  });

  test.each([
    "{% include '/etc/passwd' %}",
    "{% render 'x' %}",
    "{% layout 'x' %}",
    '{% block a %}{% endblock %}',
  ])('reads no other template: %s', (template) => {
    expect(() => render(template)).toThrow(/tag "\w+" not found/);
  });

  test.each<[string, string, object]>([
    ['parse length limit exceeded', 'x'.repeat(101), { maxLength: 100 }],
    [
      'template render limit exceeded',
      '{% for i in (1..1000000) %}{{ i }}{% endfor %}',
      { maxMilliseconds: 5 },
    ],
    [
      'memory alloc limit exceeded',
      "{% assign a = 'x' %}{% for i in (1..40) %}{% assign a = a | append: a %}{% endfor %}",
      {},
    ],
    ['memory alloc limit exceeded', '{% for i in (1..100000000) %}{% endfor %}', {}],
    ['liquid output limit exceeded', '{% for i in (1..200) %}text{% endfor %}', { maxOutput: 100 }],
  ])('%s', (message, template, limits) => {
    expect(() => render(template, limits)).toThrow(new LiquidError(message));
  });

  test('one filter that is not known', () => {
    expect(() => render('{{ 1 | nothing }}')).toThrow(/undefined filter: nothing/);
  });

  test('rendering changes neither the values nor the next rendering', () => {
    expect(render('{% assign person = 1 %}{{ person }}')).toBe('1');
    expect(render('{{ person.name }}')).toBe('Ada &lt;b&gt;');
  });
});
