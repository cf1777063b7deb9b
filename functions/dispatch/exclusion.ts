// What excludes events from a filter with certainty, at the cost of comparing some texts. It never says more than the filter
// would: what it does not exclude may still not match.
import type { Constant, Expr } from '../../hog/ast/index.ts';
import { decompileExpression } from '../../hog/bytecode/decompile.ts';
import type { Bytecode } from '../../hog/bytecode/index.ts';
import { COHORT_IDS, COHORT_TEST, LISTED_TEST } from '../../properties/index.ts';

/** An event before it is stored, with texts that are stored as they are. */
export interface Glance {
  event: string;
  distinct_id: string;
  properties: Readonly<Record<string, unknown>>;
}

export interface Exclusion {
  /** Whether the event alone excludes it. */
  excludes(event: Glance): boolean;
  /** Texts of which each is in the JSON of the person of every event that matches. */
  ofPerson: readonly string[];
  /** Of every event that matches, each of these properties has one of the texts. */
  ofEvent: readonly TextsOfProperty[];
  /** Whether the filter may end with an error. */
  mayFail: boolean;
}

export interface TextsOfProperty {
  name: string;
  texts: readonly string[];
}

const NOTHING: Exclusion = { excludes: () => false, ofPerson: [], ofEvent: [], mayFail: false };

/** Finds what excludes events from a filter. */
export function exclusionOf(bytecode: Bytecode | null): Exclusion {
  const expression = bytecode && decompileExpression(bytecode);
  if (!expression) return { ...NOTHING, mayFail: true };
  return { ...exclusionBy(expression), mayFail: !isSafe(expression) };
}

/** Both must match, the first one first. An error of the first one counts as one, whatever the other says. */
export function both(one: Exclusion, other: Exclusion): Exclusion {
  if (one.mayFail || other === NOTHING) return one;
  if (one === NOTHING) return other;
  return {
    excludes: (event) => one.excludes(event) || other.excludes(event),
    ofPerson: [...one.ofPerson, ...other.ofPerson],
    ofEvent: [...one.ofEvent, ...other.ofEvent],
    mayFail: other.mayFail,
  };
}

/** One of them must match. */
export function either(all: readonly Exclusion[]): Exclusion {
  const mayFail = all.some((one) => one.mayFail);
  return { ...NOTHING, excludes: (event) => all.every((one) => one.excludes(event)), mayFail };
}

function exclusionBy(node: Expr): Exclusion {
  switch (node.kind) {
    case 'and': {
      // A condition that fails ends the filter with an error, so those behind it say nothing.
      const unsafe = node.exprs.findIndex((one) => !isSafe(one));
      const known = unsafe === -1 ? node.exprs : node.exprs.slice(0, unsafe);
      return known.map(exclusionBy).reduce(both, NOTHING);
    }
    case 'or':
      return node.exprs.every(isSafe) ? either(node.exprs.map(exclusionBy)) : NOTHING;
    case 'constant':
      return node.value === false ? { ...NOTHING, excludes: () => true } : NOTHING;
    case 'compare':
      if (node.op === '==')
        return equality(node.left, node.right) ?? equality(node.right, node.left) ?? NOTHING;
      if (node.op === 'in') return membership(node.left, node.right) ?? NOTHING;
      return NOTHING;
    default:
      return NOTHING;
  }
}

const isText = (node: Expr): node is Constant & { value: string } =>
  node.kind === 'constant' && typeof node.value === 'string';

function equality(node: Expr, other: Expr): Exclusion | undefined {
  if (!isText(other)) return undefined;
  const { value: text } = other;
  const read = readerOf(node);
  if (read)
    return { ...NOTHING, excludes: (event) => isOther(read(event), text), ofEvent: textsOf(node, [text]) };
  const isOfPerson = node.kind === 'field' && isPath(node.chain, 'person', 'properties');
  return isOfPerson && isOnlyText(text) ? { ...NOTHING, ofPerson: [`"${text}"`] } : undefined;
}

function membership(node: Expr, list: Expr): Exclusion | undefined {
  const read = readerOf(node);
  if (!read || (list.kind !== 'tuple' && list.kind !== 'array') || !list.exprs.every(isText))
    return undefined;
  const texts = list.exprs.map(({ value }) => value);
  const excludes = (event: Glance) => texts.every((one) => isOther(read(event), one));
  return { ...NOTHING, excludes, ofEvent: textsOf(node, texts) };
}

/** What the JSON of the properties must contain. */
function textsOf(node: Expr, texts: readonly string[]): TextsOfProperty[] {
  const name = node.kind === 'field' && isPath(node.chain, 'properties') ? (node.chain[1] as string) : '';
  return PLAIN.test(name) && texts.every(isOnlyText) ? [{ name, texts }] : [];
}

/** Texts that every writer of JSON writes in the same way. */
const PLAIN = /^[ !#-[\]-~]+$/;
const OTHER_VALUES = new Set(['true', 'false', 'null']);

/** Whether the JSON of whatever is equal to the text contains it between quotation marks: a number or `true` would not. */
const isOnlyText = (text: string): boolean =>
  PLAIN.test(text) && Number.isNaN(Number(text)) && !OTHER_VALUES.has(text.toLowerCase());

/** Whether a value is certainly not equal to the text. What is no text may be converted to one. */
const isOther = (value: unknown, text: string) =>
  typeof value === 'string' ? value !== text : value === undefined || value === null;

const isPath = (chain: readonly string[], ...begin: readonly string[]) =>
  chain.length === begin.length + 1 && begin.every((one, index) => chain[index] === one);

/** It is stored in a column of its own. */
const ELEMENTS = '$elements_chain';

function readerOf(node: Expr): ((event: Glance) => unknown) | undefined {
  if (node.kind !== 'field') return undefined;
  const { chain } = node;
  if (chain.length === 1 && (chain[0] === 'event' || chain[0] === 'distinct_id')) {
    const [name] = chain as ['event' | 'distinct_id'];
    return (event) => event[name];
  }
  const name = isPath(chain, 'properties') && (chain[1] as string);
  return name && name !== ELEMENTS ? ({ properties }) => properties[name] : undefined;
}

const GLOBALS = new Set([
  'event',
  'distinct_id',
  'properties',
  'person',
  'timestamp',
  'uuid',
  ELEMENTS.slice(1),
  COHORT_IDS,
]);
const SAFE_COMPARISONS = new Set(['==', '!=', 'in', 'not in', 'like', 'ilike', 'not like', 'not ilike']);
const SAFE_CALLS = new Set(['toString', 'ifNull', 'lower', 'upper', COHORT_TEST]);

/** Whoever asks a filter has looked up the cohorts that it names. */
const isListedTest = ([id, lists]: readonly Expr[]): boolean =>
  id?.kind === 'constant' && lists?.kind === 'field' && lists.chain.join('.') === COHORT_IDS;

/** The names of the properties of a person can always be listed. */
const isPersonProperties = (node: Expr | undefined): boolean =>
  node?.kind === 'field' && node.chain.length === 2 && node.chain.join('.') === 'person.properties';

/** Answers whether an expression cannot fail, whatever the event is. */
function isSafe(node: Expr): boolean {
  switch (node.kind) {
    case 'constant':
      return true;
    case 'field':
      return GLOBALS.has(node.chain[0] as string);
    case 'and':
    case 'or':
    case 'tuple':
    case 'array':
      return node.exprs.every(isSafe);
    case 'not':
      return isSafe(node.expr);
    case 'compare':
      return SAFE_COMPARISONS.has(node.op) && isSafe(node.left) && isSafe(node.right);
    case 'call':
      if (node.name === LISTED_TEST) return isListedTest(node.args);
      if (node.name === 'keys') return node.args.length === 1 && isPersonProperties(node.args[0]);
      return SAFE_CALLS.has(node.name) && node.args.every(isSafe);
    default:
      return false;
  }
}
