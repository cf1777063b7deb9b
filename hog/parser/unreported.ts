// Finds syntax that the grammar accepts but the parser leaves out of its tree. Without it, a query would mean something
// else.
import { SourceError } from '../errors.ts';
import { type Token, tokenize } from './tokens.ts';

const SUSPECT = /totals|rollup|cube|nulls/i;
/**
 * The keywords that can follow `with totals` at the end of a GROUP BY. If `totals` is the name of a CTE, `as` follows.
 */
const AFTER_GROUPS = new Set(['having', 'order', 'limit', 'offset', 'window', 'qualify', 'settings', 'with']);
const SET_OPERATORS = new Set(['union', 'intersect', 'except']);

/**
 * Refuses `with totals`, `with rollup` and `with cube` after a GROUP BY, and `nulls first`. Null values always come
 * last.
 */
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

/**
 * Returns whether a value ends here, so that `nulls first` belongs to the order. In `order by nulls`, `nulls` is a
 * column.
 */
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
