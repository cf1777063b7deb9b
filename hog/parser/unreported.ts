// What the grammar takes and its tree does not tell: a query would mean something else without it.
import { SourceError } from '../errors.ts';
import { type Token, tokenize } from './tokens.ts';

const SUSPECT = /totals|rollup|cube|nulls/i;
/** What may stand after `with totals` at the end of a GROUP BY; after `with totals` that names a query it is `as`. */
const AFTER_GROUPS = new Set(['having', 'order', 'limit', 'offset', 'window', 'qualify', 'settings', 'with']);
const SET_OPERATORS = new Set(['union', 'intersect', 'except']);

/** Refuses `with totals`, `with rollup`, `with cube` behind groups, and `nulls first`: missing values come last. */
export function checkUnreported(source: string): void {
  if (!SUSPECT.test(source)) return;
  const tokens = tokenize(source);
  if (tokens === null) return;
  for (const [at, token] of tokens.entries()) {
    const next = tokens[at + 1];
    if (token.text === 'with' && isGroupMode(next) && endsGroups(tokens[at + 2])) {
      throw refused(source, token, next as Token);
    }
    if (token.text === 'nulls' && next?.text === 'first' && endsOrder(tokens[at - 1])) {
      throw refused(source, token, next);
    }
  }
}

const isGroupMode = (token: Token | undefined): boolean =>
  token?.kind === 'keyword' && (token.text === 'totals' || token.text === 'rollup' || token.text === 'cube');

const endsGroups = (token: Token | undefined): boolean =>
  token === undefined ||
  (token.kind === 'sign' && (token.text === ')' || token.text === ';')) ||
  (token.kind === 'keyword' && (AFTER_GROUPS.has(token.text) || SET_OPERATORS.has(token.text)));

/** `order by nulls first` would be a column of that name; behind a value it is the order's. */
const endsOrder = (token: Token | undefined): boolean =>
  token !== undefined &&
  (token.kind === 'word' ||
    token.kind === 'value' ||
    [')', ']'].includes(token.text) ||
    ['asc', 'desc', 'ascending', 'descending'].includes(token.text));

function refused(source: string, from: Token, to: Token): SourceError {
  const what = `${from.text} ${to.text}`.toUpperCase();
  return new SourceError('unsupported', `${what} is not supported`, source, {
    start: from.start,
    end: to.end,
  });
}
