import { isObject } from '../values/json-object.ts';

/** An element of a page, as autocapture saw it. The clicked element comes first, then its ancestors. */
export interface ElementOfPage {
  event: null;
  text: string | null;
  tag_name: string | null;
  attr_class: string[] | null;
  href: string | null;
  attr_id: string | null;
  nth_child: number | null;
  nth_of_type: number | null;
  attributes: Record<string, string>;
  order: number;
}

/**
 * `;` separates elements. It may also stand in the quoted value of an attribute. Both expressions begin where the last
 * match ended (`y`). Searching for a later beginning would take the square of the length of a chain with open quotes.
 */
const ELEMENT = /(?:[^;"]|"(?:\\.|[^"\\])*")+/sy;
const ATTRIBUTE = /([^="]*)="((?:\\.|[^"\\])*)"/gsy;
/** A page has some dozen nested elements. No more is taken apart of a chain than the first so many, and so many letters. */
const MOST_ELEMENTS = 1_000;
const MOST_LETTERS = 64 * 1024;

function parseElement(text: string, order: number): ElementOfPage {
  const colon = /^(?:[^:"]*)/.exec(text)?.[0].length ?? text.length;
  const [tag = '', ...classes] = text.slice(0, colon).split('.');
  const attributes = new Map<string, string>();
  for (const [, name = '', value = ''] of text.slice(colon + 1).matchAll(ATTRIBUTE)) {
    attributes.set(name, value.replaceAll('\\"', '"'));
  }
  const take = (name: string) => {
    const value = attributes.get(name) ?? null;
    attributes.delete(name);
    return value;
  };
  const number = (name: string) => {
    const value = take(name);
    return value !== null && /^-?\d{1,9}$/.test(value) ? Number(value) : null;
  };
  const named = classes.filter((one) => one !== '');
  return {
    event: null,
    text: take('text'),
    tag_name: tag || null,
    attr_class: named.length > 0 ? named : null,
    href: take('href'),
    attr_id: take('attr_id'),
    nth_child: number('nth-child'),
    nth_of_type: number('nth-of-type'),
    attributes: Object.fromEntries(attributes),
    order,
  };
}

/**
 * Parses a chain such as `a.btn:href="/x"nth-child="1"text="Buy";div:…`. An empty chain has no elements. Of a very long
 * one, only the first elements are parsed.
 */
export function parseElementsChain(chain: string): ElementOfPage[] {
  const shown = chain.slice(0, MOST_LETTERS);
  const elements: ElementOfPage[] = [];
  for (let at = 0; at < shown.length && elements.length < MOST_ELEMENTS; ) {
    if (shown[at] === ';') {
      at += 1;
      continue;
    }
    ELEMENT.lastIndex = at;
    const [text] = ELEMENT.exec(shown) ?? [];
    at += text?.length ?? 0;
    // Of an element that is cut off, or whose quote is open, nobody knows what it is.
    if (text === undefined || (at === shown.length && shown.length < chain.length)) break;
    elements.push(parseElement(text, elements.length));
  }
  return elements;
}

type Fields = Record<string, unknown>;

const LONGEST_TEXT = 400;
const LONGEST_HREF = 2048;

/** A text, number or boolean as text. Undefined for any other value. */
function plain(value: unknown): string | undefined {
  return ['string', 'number', 'boolean'].includes(typeof value) ? String(value) : undefined;
}

function classesOf(value: unknown): string[] {
  const all: unknown[] = Array.isArray(value) ? value : (plain(value) ?? '').split(/\s+/);
  return all.map((one) => (plain(one) ?? '').replaceAll('"', '')).filter((one) => one !== '');
}

function elementText(element: Fields): string {
  const attributes = new Map<string, string | undefined>([
    ['text', plain(element.$el_text)?.slice(0, LONGEST_TEXT).toWellFormed()],
    ['href', plain(element.attr__href)?.slice(0, LONGEST_HREF).toWellFormed()],
    ['attr_id', plain(element.attr__id)],
    ['nth-child', plain(element.nth_child) ?? '0'],
    ['nth-of-type', plain(element.nth_of_type) ?? '0'],
  ]);
  for (const name of Object.keys(element)) {
    if (name.startsWith('attr__')) attributes.set(name.replaceAll(/["=;]/g, ''), plain(element[name]));
  }
  const written = [...attributes]
    .filter(([name, value]) => value !== undefined && (value !== '' || name.startsWith('attr__')))
    .sort(([one], [other]) => (one < other ? -1 : 1))
    .map(([name, value]) => `${name}="${(value as string).replaceAll('"', '\\"')}"`);
  const tag = (plain(element.tag_name) ?? '').replaceAll(/[.:;"]/g, '');
  return `${[tag, ...classesOf(element.attr__class).sort()].join('.')}:${written.join('')}`;
}

/** Writes a list of elements as a chain. Some clients send the list instead of the chain. */
export function elementsChainOf(elements: readonly unknown[]): string {
  return elements.filter(isObject).map(elementText).join(';');
}
