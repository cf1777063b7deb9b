const NAMED: Record<string, string> = { quot: '"', apos: "'", amp: '&', lt: '<', gt: '>', nbsp: ' ' };

const ENTITY = /&(?:#(\d{1,7})|#[xX]([0-9a-fA-F]{1,6})|([a-zA-Z]{2,4}));/g;

/**
 * Decodes the HTML entities inside the tags of a template. Editors of HTML write them into what people type:
 * `{{ name | default: &quot;you&quot; }}`.
 */
export function decodeTags(template: string): string {
  let result = '';
  let from = 0;
  for (;;) {
    const start = nextOf(template, ['{{', '{%'], from);
    if (start === -1) return result + template.slice(from);
    const end = template.indexOf(template[start + 1] === '{' ? '}}' : '%}', start + 2);
    if (end === -1) return result + template.slice(from);
    result += template.slice(from, start) + template.slice(start, end + 2).replace(ENTITY, decoded);
    from = end + 2;
  }
}

function nextOf(text: string, signs: string[], from: number): number {
  const places = signs.map((sign) => text.indexOf(sign, from)).filter((at) => at !== -1);
  return places.length > 0 ? Math.min(...places) : -1;
}

function decoded(entity: string, decimal?: string, hex?: string, name?: string): string {
  if (name !== undefined) return NAMED[name] ?? entity;
  const code = decimal === undefined ? Number.parseInt(hex ?? '', 16) : Number(decimal);
  return code > 0 && code <= 0x10ffff && !(code >= 0xd800 && code <= 0xdfff)
    ? String.fromCodePoint(code)
    : entity;
}
