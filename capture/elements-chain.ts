/** An element of a page as autocapture saw it; the clicked one first, then its ancestors. */
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

/** Elements are parted by `;`, which may also stand in the quoted value of an attribute. */
const ELEMENT = /(?:[^;"]|"(?:\\.|[^"\\])*")+/gs;
const ATTRIBUTE = /([^="]*)="((?:\\.|[^"\\])*)"/gs;

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

/** `a.btn:href="/x"nth-child="1"text="Buy";div:…` as a list; empty for an empty chain. */
export function parseElementsChain(chain: string): ElementOfPage[] {
  return (chain.match(ELEMENT) ?? []).map(parseElement);
}
