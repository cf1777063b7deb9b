// Functions with regular expressions.
import { coerced } from '../coerce.ts';
import { regexTest } from '../compare.ts';
import { fault } from '../errors.ts';
import { groupCount, regexParameter } from '../regex.ts';
import { digits, join, type Sql, sql } from '../sql.ts';
import type { Type, Value } from '../types.ts';
import { custom, type FunctionCall, type FunctionTable, literalCount, literalText, within } from './spec.ts';

const TEXTS: Type = { array: 'string' };
/** What a piece of a text takes at most, as a multiple of its bytes. */
const PIECES = 16;

const matchAny = (index: boolean) =>
  custom(2, 2, ({ place, node, args, span }) => {
    const list = node.args[1];
    if (list?.kind !== 'array') throw fault('The regular expressions must be an array literal', span);
    const tests = list.exprs.map((one) => {
      const pattern = one.kind === 'constant' ? one.value : null;
      if (typeof pattern !== 'string') throw fault('A regular expression must be a text literal', one.span);
      const value: Value = { sql: sql``, type: 'string', literal: pattern };
      return regexTest(
        place,
        args[0]!,
        value,
        { insensitive: false, negated: false, nullIsFalse: true },
        one.span,
      );
    });
    if (tests.length === 0) return { sql: sql`0::bigint`, type: 'int' };
    const branches = tests.map((test, at) => sql` when ${test} then ${index ? digits(at + 1) : sql`1`}`);
    return { sql: sql`(case${join(branches, sql``)} else 0 end)::bigint`, type: 'int' };
  });

/** Prepares the extraction of the first group, or of the whole match if there are no groups. */
function extractGroup({ place, args, span }: FunctionCall): { text: Sql; pattern: Sql; group: Sql } {
  const source = literalText(args[1], 'A regular expression', span);
  const pattern = regexParameter(place.printer, args[1]!, false, span, true);
  return {
    text: coerced(place, args[0]!, 'string', span),
    pattern,
    group: groupCount(source) > 0 ? sql`1` : sql`0`,
  };
}

const extract = custom(2, 2, (call) => {
  const { text, pattern, group } = extractGroup(call);
  return { sql: sql`hq.regexp_extract(${text}, ${pattern}, ${group})`, type: 'string' };
});

/**
 * Translates a replacement. `\1` is a group in both RE2 and Postgres. Other escapes are adapted, so that Postgres reads
 * them as RE2 does.
 */
function replacement({ place, args, span }: FunctionCall): Sql {
  const text = literalText(args[2], 'The replacement', span);
  const made = text.replace(/\\([\s\S]?)/g, (found, next: string) => {
    if (next === '0') return '\\&';
    if (/[1-9]/.test(next)) return found;
    return next === '\\' ? '\\\\' : `\\\\${next}`;
  });
  return place.printer.parameters.add('text', made);
}

const replaceRegexp = (all: boolean) =>
  custom(3, 3, (call) => {
    const { place, args, span } = call;
    const pattern = regexParameter(place.printer, args[1]!, false, span, true);
    const flags = all ? sql`'g'` : sql`''`;
    const text = coerced(place, args[0]!, 'string', span);
    const most = place.printer.sizes.most();
    return {
      sql: sql`hq.regexp_replace(${text}, ${pattern}, ${replacement(call)}, ${flags}, ${most})`,
      type: 'string',
      built: 1,
    };
  });

const match = (insensitive: boolean) =>
  custom(2, 2, ({ place, args, span }) => ({
    sql: sql`(${coerced(place, args[0]!, 'string', span)} ~ ${regexParameter(place.printer, args[1]!, insensitive, span)})`,
    type: 'bool',
  }));

export const PATTERNS: FunctionTable = {
  replaceRegexpAll: replaceRegexp(true),
  replaceRegexpOne: replaceRegexp(false),
  match: match(false),
  extract,
  extractRegex: extract,
  regexpExtract: custom(2, 3, (call) => {
    const { args, span } = call;
    const { text, pattern } = extractGroup(call);
    const most = groupCount(literalText(args[1], 'A regular expression', span));
    if (!args[2] && most === 0)
      throw fault('The regular expression has no group: the third argument 0 extracts all of it', span);
    const group = args[2] ? literalCount(args[2], 'The number of the group', 0, most, span) : 1;
    return { sql: sql`hq.regexp_extract(${text}, ${pattern}, ${digits(group)})`, type: 'string' };
  }),
  extractGroups: custom(2, 2, (call) => {
    const { text, pattern, group } = extractGroup(call);
    if (group.text === '0') throw fault('The regular expression has no group', call.span);
    const whole = within(call.place.printer.sizes.most(), text, PIECES);
    return { sql: sql`hq.regexp_groups(${whole}, ${pattern})`, type: TEXTS, built: 1 };
  }),
  extractAll: custom(2, 2, (call) => {
    const { text, pattern, group } = extractGroup(call);
    const whole = within(call.place.printer.sizes.most(), text, PIECES);
    return { sql: sql`hq.regexp_extract_all(${whole}, ${pattern}, ${group})`, type: TEXTS, built: 1 };
  }),
  countMatches: custom(2, 2, ({ place, args, span }) => ({
    sql: sql`regexp_count(${coerced(place, args[0]!, 'string', span)}, ${regexParameter(place.printer, args[1]!, false, span, true)})::bigint`,
    type: 'int',
  })),
  countMatchesCaseInsensitive: custom(2, 2, ({ place, args, span }) => ({
    sql: sql`regexp_count(${coerced(place, args[0]!, 'string', span)}, ${regexParameter(place.printer, args[1]!, true, span, true)})::bigint`,
    type: 'int',
  })),
  splitByRegexp: custom(2, 2, ({ place, args, span }) => ({
    sql: sql`hq.split_regexp(${within(place.printer.sizes.most(), coerced(place, args[1]!, 'string', span), PIECES)}, ${regexParameter(place.printer, args[0]!, false, span, true)})`,
    type: TEXTS,
    built: 1,
  })),
  multiMatchAny: matchAny(false),
  multiMatchAnyIndex: matchAny(true),
};
