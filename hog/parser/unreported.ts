// Finds syntax that the grammar accepts but the parser leaves out of its tree. Without it, a query would mean something
// else.
import { SourceError } from '../errors.ts';
import { type Token, tokenize } from './tokens.ts';

const SUSPECT = /totals|rollup|cube|nulls|\)\s*order\s/i;
/**
 * The keywords that can follow `with totals` at the end of a GROUP BY. If `totals` is the name of a CTE, `as` follows.
 */
const AFTER_GROUPS = new Set(['having', 'order', 'limit', 'offset', 'window', 'qualify', 'settings', 'with']);
const SET_OPERATORS = new Set(['union', 'intersect', 'except']);
const BEFORE_OPERAND = new Set([...SET_OPERATORS, 'all', 'distinct', 'name']);

/**
 * Refuses `with totals`, `with rollup` and `with cube` after a GROUP BY; `nulls first`, because null values always come last; and
 * the order of a query in parentheses, as in `(select …) order by a`.
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
    if (token.text === 'order' && next?.text === 'by' && closesQuery(tokens, at - 1)) {
      throw new SourceError(
        'unsupported',
        'ORDER BY after a query in parentheses is not supported: use SELECT * FROM (…) ORDER BY …',
        source,
        { start: token.start, end: next.end },
      );
    }
  }
}

/** Returns whether a `)` closes a query that stands alone, or after UNION, INTERSECT or EXCEPT. */
function closesQuery(tokens: readonly Token[], at: number): boolean {
  const closing = tokens[at];
  if (closing?.text !== ')') return false;
  const before = tokens[closing.partner - 1];
  const first = tokens[closing.partner + 1]?.text ?? '';
  return (
    ['select', 'with', '('].includes(first) &&
    (before === undefined || before.text === '(' || BEFORE_OPERAND.has(before.text))
  );
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
