// Functions for text. They count characters and know all letters of Unicode, with and without `UTF8` in their names: a text
// cannot be cut inside of a character.
import { coerced } from '../coerce.ts';
import { withClocks } from '../compound.ts';
import { fault } from '../errors.ts';
import { join, NOTHING, type Sql, sql } from '../sql.ts';
import { isArray, type Type, type Value } from '../types.ts';
import { searched, searchedForAll } from '../work.ts';
import { PATTERNS } from './patterns.ts';
import { READABLE } from './readable.ts';
import {
  bounds,
  custom,
  type FunctionCall,
  type FunctionTable,
  literalText,
  MANY,
  of,
  within,
} from './spec.ts';

const TEXTS: Type = { array: 'string' };

const length = custom(1, 1, ({ place, args, span }) => {
  const [value] = args as [Value];
  if (isArray(value.type)) return { sql: sql`cardinality(${value.sql})::bigint`, type: 'int' };
  return { sql: sql`char_length(${coerced(place, value, 'string', span)})::bigint`, type: 'int' };
});

const empty = (negated: boolean) =>
  custom(1, 1, ({ place, args, span }) => {
    const [value] = args as [Value];
    const test = isArray(value.type)
      ? sql`(cardinality(${value.sql}) = 0)`
      : sql`(${coerced(place, value, 'string', span)} = '')`;
    return { sql: negated ? sql`(not ${test})` : test, type: 'bool' };
  });

const reverse = custom(1, 1, ({ place, args, span }) => {
  const [value] = args as [Value];
  if (isArray(value.type)) return { sql: sql`hq.array_reverse(${value.sql})`, type: value.type };
  return { sql: sql`reverse(${coerced(place, value, 'string', span)})`, type: 'string' };
});

const concat = custom(1, MANY, ({ place, args, span }) => ({
  sql: sql`concat(${join(args.map((one) => coerced(place, one, 'string', span)))})`,
  type: 'string',
  certain: true,
}));

const search = (wanted: 'any' | 'first' | 'index' | 'all', insensitive: boolean) =>
  custom(2, 2, ({ place, node, args, span }) => {
    const text = coerced(place, args[0]!, 'string', span);
    if (!isArray(args[1]!.type)) throw fault('The texts to look for must be an array', span);
    const needles = sql`(${args[1]!.sql})::text[]`;
    const [one, other] = insensitive ? [sql`lower(${text})`, sql`hq.lower_all(${needles})`] : [text, needles];
    const made = {
      any: sql`hq.search_any`,
      first: sql`hq.search_first_position`,
      index: sql`hq.search_first_index`,
      all: sql`hq.search_all_positions`,
    };
    const within = searchedForAll(one, node.args[1], other);
    return {
      sql: sql`${made[wanted]}(${within}, ${other})`,
      type: wanted === 'all' ? { array: 'int' } : 'int',
    };
  });

/** Declares a family of searches for texts of a list. All of them count characters. */
function searches(name: string, wanted: 'any' | 'first' | 'index' | 'all'): FunctionTable {
  const [exact, insensitive] = [search(wanted, false), search(wanted, true)];
  return {
    [name]: exact,
    [`${name}UTF8`]: exact,
    [`${name}CaseInsensitive`]: insensitive,
    [`${name}CaseInsensitiveUTF8`]: insensitive,
  };
}

/** Declares a search for a word, between characters of ASCII that are neither letters nor digits. */
const word = (insensitive: boolean) =>
  custom(2, 2, (call) => {
    const [given, sought] = searching(call);
    const [text, token] = insensitive ? [sql`lower(${given})`, sql`lower(${sought})`] : [given, sought];
    const whole = within(call.place.printer.sizes.most(), text, PIECES);
    // Most texts do not have it at all.
    return {
      sql: sql`(case when strpos(${text}, ${token}) = 0 then false else ${token} = any(hq.split_non_alpha(${whole})) end)`,
      type: 'bool',
    };
  });

const countSubstringsInAnyCase = custom(2, 2, (call) => {
  const [text, needle] = searching(call);
  return { sql: sql`hq.count_substrings(lower(${text}), lower(${needle}))`, type: 'int' };
});

/** The arguments of a call as texts. The second one is searched for in the first one. */
function searching({ place, args, span }: FunctionCall): [text: Sql, needle: Sql] {
  const [text, needle] = args.map((one) => coerced(place, one, 'string', span)) as [Sql, Sql];
  return [searched(text, args[1]!, needle), needle];
}

const trim = (name: Sql) =>
  custom(1, 2, (call) => {
    const { place, args, span } = call;
    if (args.length === 1) {
      return { sql: sql`${name}(${coerced(place, args[0]!, 'string', span)}, ' ')`, type: 'string' };
    }
    const [text, characters] = searching(call);
    return { sql: sql`${name}(${text}, ${characters})`, type: 'string' };
  });

const substring = of('s i i?', 'string', (text, from, count) =>
  count ? sql`hq.substring(${text}, ${from}, ${count})` : sql`hq.substring(${text}, ${from})`,
);

const position = (fold: boolean) =>
  custom(2, 3, (call) => {
    const { place, args, span } = call;
    const [text, needle] = searching({ ...call, args: args.slice(0, 2) });
    const [one, other] = fold ? [sql`lower(${text})`, sql`lower(${needle})`] : [text, needle];
    const made = args[2]
      ? sql`hq.position(${one}, ${other}, ${coerced(place, args[2], 'int', span)})`
      : sql`strpos(${one}, ${other})::bigint`;
    return { sql: made, type: 'int' };
  });

const pad = (name: Sql) =>
  bounds(
    's i s?',
    'string',
    (most, text, count, fill) =>
      sql`hq.${name}(${text}, hq.count_of(${count}), ${fill ?? sql`' '`}, ${most})`,
  );

const lower = of('s', 'string', (text) => sql`lower(${text})`);
const upper = of('s', 'string', (text) => sql`upper(${text})`);
const replaceAll = custom(3, 3, (call) => {
  const { place, args, span } = call;
  const [text, from] = searching({ ...call, args: args.slice(0, 2) });
  const to = coerced(place, args[2]!, 'string', span);
  const most = place.printer.sizes.most();
  return { sql: sql`hq.replace(${text}, ${from}, ${to}, ${most})`, type: 'string', built: 1 };
});
const trimBoth = trim(sql`btrim`);
const trimLeft = trim(sql`ltrim`);
const trimRight = trim(sql`rtrim`);
const leftPad = pad(sql`lpad`);
const rightPad = pad(sql`rpad`);
/** An element of an array takes some bytes more than its text, and much more while it is found. */
const PIECES = 16;
const pieces = (name: Sql) =>
  bounds('s', TEXTS, (most, text) => sql`hq.${name}(${within(most, text!, PIECES)})`);
const split = custom(2, 3, (call) => {
  const { place, args, span } = call;
  const [text, separator] = searching({ ...call, args: [args[1]!, args[0]!] });
  const whole = within(place.printer.sizes.most(), text, PIECES);
  const count = args[2] ? sql`, ${coerced(place, args[2], 'int', span)}` : NOTHING;
  return { sql: sql`hq.split(${whole}, ${separator}${count})`, type: TEXTS, built: 1 };
});

/** A character of one byte can become one of four. */
const translate = custom(3, 3, (call) => {
  const { place, args, span } = call;
  const [text, from] = searching({ ...call, args: args.slice(0, 2) });
  const to = coerced(place, args[2]!, 'string', span);
  const whole = within(place.printer.sizes.most(), text, 4);
  return { sql: sql`translate(${whole}, ${from}, ${to})`, type: 'string', built: 1 };
});

export const STRINGS: FunctionTable = {
  ...PATTERNS,
  ...READABLE,
  length,
  lengthUTF8: length,
  char_length: length,
  octet_length: of('s', 'int', (text) => sql`octet_length(${text})::bigint`),
  empty: empty(false),
  isEmpty: empty(false),
  notEmpty: empty(true),
  isNotEmpty: empty(true),
  lower,
  lowerUTF8: lower,
  upper,
  upperUTF8: upper,
  reverse,
  reverseUTF8: reverse,
  concat,
  concatWithSeparator: custom(2, MANY, ({ place, args, span }) => {
    const texts = args.map((one) => coerced(place, one, 'string', span));
    // The separator is put in between all others.
    const built =
      args.reduce((sum, one) => sum + (one.built ?? 0), 0) +
      (args[0]?.built ?? 0) * Math.max(0, args.length - 3);
    return { sql: sql`concat_ws(${join(texts)})`, type: 'string', ...(built > 0 && { built }) };
  }),
  substring,
  substringUTF8: substring,
  substr: substring,
  left: of('s i', 'string', (text, count) => sql`left(${text}, hq.count_of(${count}))`),
  right: of('s i', 'string', (text, count) => sql`right(${text}, hq.count_of(${count}))`),
  leftPad,
  lpad: leftPad,
  rightPad,
  rpad: rightPad,
  leftPadUTF8: leftPad,
  rightPadUTF8: rightPad,
  repeat: bounds(
    's i',
    'string',
    (most, text, count) => sql`hq.repeat(${text}, hq.count_of(${count}), ${most})`,
  ),
  space: bounds('i', 'string', (most, count) => sql`hq.repeat(' ', hq.count_of(${count}), ${most})`),
  initcap: of('s', 'string', (text) => sql`initcap(${text})`),
  initcapUTF8: of('s', 'string', (text) => sql`initcap(${text})`),
  trim: trimBoth,
  trimBoth,
  btrim: trimBoth,
  trimLeft,
  ltrim: trimLeft,
  trimRight,
  rtrim: trimRight,
  startsWith: of('s s', 'bool', (text, start) => sql`starts_with(${text}, ${start})`),
  startsWithUTF8: of('s s', 'bool', (text, start) => sql`starts_with(${text}, ${start})`),
  endsWith: of('s s', 'bool', (text, end) => sql`hq.ends_with(${text}, ${end})`),
  endsWithUTF8: of('s s', 'bool', (text, end) => sql`hq.ends_with(${text}, ${end})`),
  position: position(false),
  positionUTF8: position(false),
  strpos: position(false),
  positionCaseInsensitive: position(true),
  positionCaseInsensitiveUTF8: position(true),
  locate: custom(2, 2, (call) => {
    const [text, needle] = searching({ ...call, args: [call.args[1]!, call.args[0]!] });
    return { sql: sql`strpos(${text}, ${needle})::bigint`, type: 'int' };
  }),
  replace: replaceAll,
  replaceAll,
  replaceOne: custom(3, 3, (call) => {
    const { place, args, span } = call;
    const [text, from] = searching({ ...call, args: args.slice(0, 2) });
    const to = coerced(place, args[2]!, 'string', span);
    return { sql: sql`hq.replace_one(${text}, ${from}, ${to})`, type: 'string' };
  }),
  countSubstrings: custom(2, 2, (call) => {
    const [text, needle] = searching(call);
    return { sql: sql`hq.count_substrings(${text}, ${needle})`, type: 'int' };
  }),
  countSubstringsCaseInsensitive: countSubstringsInAnyCase,
  countSubstringsCaseInsensitiveUTF8: countSubstringsInAnyCase,
  splitByChar: split,
  splitByString: split,
  splitByWhitespace: pieces(sql`split_blank`),
  splitByNonAlpha: pieces(sql`split_non_alpha`),
  split_part: custom(3, 3, (call) => {
    const { place, args, span } = call;
    const [text, separator] = searching({ ...call, args: args.slice(0, 2) });
    const index = coerced(place, args[2]!, 'int', span);
    return { sql: sql`hq.split_part(${text}, ${separator}, ${index})`, type: 'string' };
  }),
  arrayStringConcat: custom(1, 2, ({ place, args, span }) => {
    const [given, separator] = args as [Value, Value | undefined];
    const list = withClocks(place, given, span);
    if (!isArray(list.type)) throw fault('An array is needed here', span);
    const between = separator ? coerced(place, separator, 'string', span) : sql`''`;
    return {
      sql: sql`hq.array_to_string(${list.sql}, ${between}, ${place.printer.sizes.most()})`,
      type: 'string',
      built: 1,
    };
  }),
  ...searches('multiSearchAny', 'any'),
  ...searches('multiSearchFirstPosition', 'first'),
  ...searches('multiSearchFirstIndex', 'index'),
  ...searches('multiSearchAllPositions', 'all'),
  hasToken: word(false),
  hasTokenCaseInsensitive: word(true),
  base64Encode: bounds('s', 'string', (most, text) => sql`hq.base64_encode(${within(most, text!, 2)})`),
  base64Decode: of('s', 'string', (text) => sql`hq.base64_decode(${text})`),
  tryBase64Decode: of('s', 'string', (text) => sql`coalesce(hq.base64_decode(${text}), '')`),
  ascii: of('s', 'int', (text) => sql`ascii(${text})::bigint`),
  translate,
  translateUTF8: translate,
  format: custom(1, MANY, ({ place, args, span }) => {
    const pieces = formatPieces(literalText(args[0], 'The format', span));
    let next = 0;
    const texts = pieces.map((piece) => {
      if (typeof piece === 'string') return place.printer.parameters.add('text', piece);
      const value = args[1 + (piece ?? next++)];
      if (!value) throw fault('The format has more placeholders than there are values', span);
      return coerced(place, value, 'string', span);
    });
    if (texts.length === 0) return { sql: sql`''`, type: 'string' };
    // A value can be put in many times.
    const built = args.reduce((sum, one) => sum + (one.built ?? 0), 0) * texts.length;
    return { sql: sql`(${join(texts, sql` || `)})`, type: 'string', ...(built > 0 && { built }) };
  }),
  tokens: pieces(sql`split_non_alpha`),
  alphaTokens: pieces(sql`alpha_tokens`),
  appendTrailingCharIfAbsent: of(
    's s',
    'string',
    (text, end) =>
      sql`(case when ${text} = '' or right(${text}, 1) = ${end} then ${text} else ${text} || ${end} end)`,
  ),
  md5: of('s', 'string', (text) => sql`upper(md5(${text}))`),
  md5Hex: of('s', 'string', (text) => sql`md5(${text})`),
  sha256Hex: of('s', 'string', (text) => sql`encode(sha256(convert_to(${text}, 'UTF8')), 'hex')`),
  normalizeUTF8NFC: bounds('s', 'string', (most, text) => sql`hq.normalize(${within(most, text!, 4)})`),
};

/**
 * Splits a format into texts and placeholders. A placeholder is the number of a value, or null for the next one. `{{`
 * is a literal brace.
 */
function formatPieces(format: string): (string | number | null)[] {
  const pieces: (string | number | null)[] = [];
  for (const [found, index] of format.matchAll(/\{\{|\}\}|\{(\d{0,3})\}|[^{}]+|[{}]/g)) {
    if (index !== undefined) pieces.push(index === '' ? null : Number(index));
    else pieces.push(found === '{{' ? '{' : found === '}}' ? '}' : found);
  }
  return pieces;
}
