// Conditions on the clicked element, as regular expressions over `elements_chain`. The chain lists the clicked element
// first and then its ancestors: `a.big.red:href="/x"nth-child="1"text="Go";div:attr__id="top"…`.
import { build, type Expr } from '../hog/ast/index.ts';
import { FilterError } from './errors.ts';

const CHAIN = build.field('elements_chain');
const NAME = /^-?[A-Za-z_][\w-]*$/;

const chainMatches = (pattern: string): Expr => build.compare('=~', CHAIN, build.constant(pattern));

export function tagNameTest(name: string): Expr {
  if (!NAME.test(name)) throw new FilterError(`"${name.slice(0, 60)}" is not a tag name`);
  return chainMatches(`(^|;)${name}(\\.|$|;|:)`);
}

interface Part {
  tag: string | null;
  classes: string[];
  attributes: [name: string, value: string][];
  /** True if the element must be a direct child of the part before it (`>`), not any descendant. */
  direct: boolean;
}

const MAX_PARTS = 30;

/**
 * Builds the condition for a CSS selector. It supports tags, classes, ids, `[attribute="value"]`, `:nth-child(n)`,
 * descendants and `>`.
 */
export const selectorTest = (selector: string): Expr => chainMatches(selectorPattern(selector));

/** Returns the regular expression that finds the elements of a CSS selector in a chain. */
export function selectorPattern(selector: string): string {
  const inOrder = readSelector(selector).reverse();
  const last = inOrder.length - 1;
  const pattern = inOrder.map((part, index) => {
    const link = index === 0 ? '(^|;)' : (inOrder[index - 1] as Part).direct ? ';' : ';(.*;)?';
    return link + elementPattern(part, index === last);
  });
  return pattern.join('');
}

function elementPattern(part: Part, last: boolean): string {
  // `*` needs at least one element. An event without elements has an empty chain.
  if (last && part.tag === null && part.classes.length + part.attributes.length === 0) return '[^;]';
  const tag = part.tag === null ? '[^;:.]*' : escapeRegex(part.tag);
  // The chain sorts classes and attributes, so the pattern needs only one order.
  const classes = [...part.classes].sort().map((name) => `(\\.[^;:.]+)*\\.${escapeRegex(name)}`);
  const head = tag + classes.join('');
  if (part.attributes.length === 0) return head + (last ? '([.:;]|$)' : '([.:][^;]*)?');
  const attributes = [...part.attributes]
    .sort(([left], [right]) => (left < right ? -1 : left > right ? 1 : 0))
    .map(([name, value]) => `([^;]*")?${escapeRegex(name)}="${escapeRegex(value)}"`);
  return `${head}(\\.[^;:]*)?:${attributes.join('')}${last ? '' : '[^;]*'}`;
}

function readSelector(selector: string): Part[] {
  const parts: Part[] = [];
  let rest = selector.trim();
  let direct = false;
  while (rest !== '') {
    const match = COMPOUND.exec(rest);
    const compound = match?.[0] ?? '';
    if (compound === '' || parts.length >= MAX_PARTS) {
      throw new FilterError(`The selector "${selector.slice(0, 60)}" cannot be read`);
    }
    parts.push({ ...readCompound(compound), direct });
    rest = rest.slice(compound.length);
    const combinator = /^\s*(>?)\s*/.exec(rest) as RegExpExecArray;
    direct = combinator[1] === '>';
    rest = rest.slice(combinator[0].length);
    if (rest === '' && direct) {
      throw new FilterError(`The selector "${selector.slice(0, 60)}" ends with ">"`);
    }
  }
  if (parts.length === 0) throw new FilterError('An empty selector selects nothing');
  return parts;
}

const COMPOUND =
  /^(?:\*|[A-Za-z][\w-]*)?(?:\.-?[A-Za-z_][\w-]*|#[\w-]+|\[[A-Za-z_][\w-]*=(?:"[^"\\]*"|'[^'\\]*')\]|:nth-(?:child|of-type)\(\d{1,6}\))*/;

function readCompound(text: string): Part {
  const part: Part = { tag: null, classes: [], attributes: [], direct: false };
  const pieces =
    /\[([\w-]+)=(?:"([^"]*)"|'([^']*)')\]|:(nth-(?:child|of-type))\((\d+)\)|\.([\w-]+)|#([\w-]+)|^([\w-]+|\*)/g;
  for (const [, name, double, single, nth, index, className, id, tag] of text.matchAll(pieces)) {
    if (name !== undefined) part.attributes.push([attributeName(name), double ?? single ?? '']);
    else if (nth !== undefined) part.attributes.push([nth, index as string]);
    else if (className !== undefined) part.classes.push(className);
    else if (id !== undefined) part.attributes.push(['attr_id', id]);
    else if (tag !== undefined && tag !== '*') part.tag = tag;
  }
  return part;
}

/** Returns the key of an attribute in the chain. `href`, `text` and positions have keys of their own. */
function attributeName(name: string): string {
  if (name === 'id') return 'attr_id';
  return name === 'href' || name === 'text' ? name : `attr__${name}`;
}

const escapeRegex = (text: string): string => text.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&');
