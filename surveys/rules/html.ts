/** The elements that a text may have: they hold and mark texts, and load nothing but pictures. */
const ELEMENTS = new Set([
  ...['a', 'abbr', 'b', 'bdi', 'bdo', 'blockquote', 'br', 'caption', 'center', 'cite', 'code', 'dd', 'del'],
  ...['details', 'dfn', 'div', 'dl', 'dt', 'em', 'figcaption', 'figure', 'footer', 'h1', 'h2', 'h3', 'h4'],
  ...['h5', 'h6', 'header', 'hr', 'i', 'img', 'ins', 'kbd', 'li', 'mark', 'ol', 'p', 'pre', 'q', 's', 'samp'],
  ...['section', 'small', 'span', 'strike', 'strong', 'sub', 'summary', 'sup', 'table', 'tbody', 'td'],
  ...['tfoot', 'th', 'thead', 'time', 'tr', 'tt', 'u', 'ul', 'var', 'wbr'],
]);
const ATTRIBUTES = new Set([
  ...['align', 'alt', 'aria-hidden', 'aria-label', 'class', 'colspan', 'datetime', 'dir', 'height', 'href'],
  ...['lang', 'rel', 'role', 'rowspan', 'src', 'start', 'style', 'target', 'title', 'width'],
]);
/** What addresses in attributes begin with. */
const ADDRESS = /^(?:https?:\/\/|mailto:|tel:|\/|#|\?)/i;

/** What parts attributes. `\s` has more, which browsers take for letters. */
const SPACE = '[\\t\\n\\f\\r ]';
const NAME = '[a-z][a-z0-9-]*';
const VALUE = `(?:"[^"]*"|'[^']*'|[^\\s"'=<>\`]+)`;
const ASSIGNED = `${SPACE}*=${SPACE}*`;
/** One tag as browsers read it. What has another form might be read in another way, and is refused. */
const TAG = new RegExp(`<(/?)(${NAME})((?:${SPACE}+${NAME}(?:${ASSIGNED}${VALUE})?)*)${SPACE}*/?>`, 'iy');
const ATTRIBUTE = new RegExp(`${SPACE}+(${NAME})(?:${ASSIGNED}(${VALUE}))?`, 'gi');
/** After these characters, `<` begins something other than a text. */
const BEGINS_MARKUP = /[a-z/!?]/i;

const unquoted = (value: string): string => (/^["']/.test(value) ? value.slice(1, -1) : value);

/** Finds an attribute that a tag may not have. */
function forbiddenAttribute(attributes: string): string | undefined {
  for (const part of attributes.matchAll(ATTRIBUTE)) {
    const name = (part[1] as string).toLowerCase();
    if (!ATTRIBUTES.has(name)) return name;
    if ((name === 'href' || name === 'src') && !ADDRESS.test(unquoted(part[2] ?? ''))) return name;
  }
  return undefined;
}

/**
 * Finds what a text that pages show as HTML may not have, such as `<script>` or `onclick` of `<b>`. Whoever may write surveys
 * may not run programs in the pages that show them.
 */
export function forbiddenHtml(text: string): string | undefined {
  for (let at = text.indexOf('<'); at !== -1; at = text.indexOf('<', at)) {
    if (!BEGINS_MARKUP.test(text[at + 1] ?? '')) {
      at += 1;
      continue;
    }
    TAG.lastIndex = at;
    const tag = TAG.exec(text);
    if (!tag) return text.slice(at, at + 20);
    const [whole, , name, attributes] = tag as unknown as [string, string, string, string];
    if (!ELEMENTS.has(name.toLowerCase())) return `<${name}>`;
    const attribute = forbiddenAttribute(attributes);
    if (attribute !== undefined) return `${attribute} of <${name}>`;
    at += whole.length;
  }
  return undefined;
}
