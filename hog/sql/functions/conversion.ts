// Conversions between types. A value that cannot be converted becomes NULL.
import { castTo } from '../casts.ts';
import { coerce, coerced } from '../coerce.ts';
import { withClocks } from '../compound.ts';
import { type Sql, sql } from '../sql.ts';
import { type DateTime, isDateTime, isNumber, type Type, typeName, type Value } from '../types.ts';
import { shortTime } from '../work.ts';
import { timeType, zoneOf } from '../zones.ts';
import { inputFormat } from './formats.ts';
import {
  custom,
  type FunctionCall,
  type FunctionSpec,
  type FunctionTable,
  literalText,
  of,
  within,
  zoneAt,
} from './spec.ts';

/** What does not convert becomes 0, or the default. A missing text stays missing, unless there is a default. */
const orElse = (
  letters: string,
  type: Type,
  convert: (value: Sql) => Sql,
  orZero: (value: Sql) => Sql,
): FunctionSpec =>
  of(letters, type, (value, other) =>
    other ? sql`coalesce(${convert(value as Sql)}, ${other})` : orZero(value as Sql),
  );

const number = (target: 'int' | 'float') =>
  custom(1, 2, ({ place, args, span }) => ({ sql: coerced(place, args[0]!, target, span), type: target }));

/** Returns the type of the times that a conversion makes. Precisions, as in `toDateTime64(x, 6, zone)`, are ignored. */
function zoneOfConversion(call: FunctionCall): DateTime | undefined {
  const at = call.args.findIndex(({ type }, index) => index > 0 && !isNumber(type));
  return at === -1 ? undefined : zoneAt(call, at);
}

const time = custom(1, 3, (call) => {
  const { place, args, span } = call;
  const [value] = args as [Value];
  const zone = zoneOfConversion(call);
  if (!zone) return { sql: coerced(place, value, 'datetime', span), type: timeType(value) };
  if (value.type === 'string') {
    return { sql: sql`hq.to_datetime(${value.sql}, ${zoneOf(place.printer, zone)})`, type: zone };
  }
  return { sql: coerced(place, value, zone, span), type: zone };
});

const date = custom(1, 2, (call) => {
  const { place, args, span } = call;
  const [value] = args as [Value];
  const zone = zoneAt(call, 1);
  if (!zone) return { sql: coerced(place, value, 'date', span), type: 'date' };
  if (value.type === 'string') {
    return { sql: sql`hq.to_date(${value.sql}, ${zoneOf(place.printer, zone)})`, type: 'date' };
  }
  return {
    sql: coerced(place, isDateTime(value.type) ? { ...value, type: zone } : value, 'date', span),
    type: 'date',
  };
});

const toFloat = (value: Sql): Sql => sql`hq.to_float(${value})`;
const toInt = (value: Sql): Sql => sql`hq.to_int(${value})`;

const text = custom(1, 2, (call) => {
  const [value] = call.args as [Value];
  const zone = zoneAt(call, 1);
  const shown = zone && isDateTime(value.type) ? { ...value, type: zone } : value;
  return coerce(call.place, withClocks(call.place, shown, call.span), 'string', call.span);
});

const jsonText = custom(1, 1, ({ place, args, span }) => {
  const value = withClocks(place, args[0]!, span);
  // A text becomes a JSON string, unless it comes from a JSON document.
  if (value.type === 'string' && !value.json)
    return {
      sql: within(place.printer.sizes.most(), sql`to_json(${value.sql})::text`, 1),
      type: 'string',
      built: 2,
    };
  return { sql: sql`hq.compact_json(${coerced(place, value, 'json', span)})`, type: 'string' };
});

const ints = [8, 16, 32, 64, 128, 256].flatMap((bits) => [`toInt${bits}`, `toUInt${bits}`]);
const suffixed = (names: string[], suffix: string, spec: FunctionSpec): Record<string, FunctionSpec> =>
  Object.fromEntries(names.map((name) => [name + suffix, spec]));
const floats = ['toFloat32', 'toFloat64'];
const intOrZero = (value: Sql): Sql => sql`hq.int_or_zero(${value})`;
const floatOrZero = (value: Sql): Sql => sql`hq.float_or_zero(${value})`;

export const CONVERSION: FunctionTable = {
  toInt: number('int'),
  // PostHog has these by such names, too.
  ...suffixed(['_toInt8', '_toInt16', '_toInt32', '_toInt64', '_toUInt64', '_toUInt128'], '', number('int')),
  _toDate: date,
  ...suffixed(ints, '', number('int')),
  ...suffixed(['toInt', ...ints], 'OrNull', of('s', 'int', toInt)),
  ...suffixed(['toInt', ...ints], 'OrZero', of('s', 'int', intOrZero)),
  ...suffixed(['toInt', ...ints], 'OrDefault', orElse('s i?', 'int', toInt, intOrZero)),
  toFloat: number('float'),
  ...suffixed(floats, '', number('float')),
  ...suffixed(['toFloat', ...floats], 'OrNull', of('s', 'float', toFloat)),
  ...suffixed(['toFloat', ...floats], 'OrZero', of('s', 'float', floatOrZero)),
  ...suffixed(['toFloat', ...floats], 'OrDefault', orElse('s f?', 'float', toFloat, floatOrZero)),
  toDecimal: of(
    'x i',
    'float',
    (value, scale) => sql`hq.to_decimal((${value})::text, hq.count_of(${scale}))`,
  ),
  toString: text,
  toNullableString: text,
  toUUID: of('s', 'uuid', (value) => sql`hq.to_uuid(${value})`),
  toUUIDOrNull: of('s', 'uuid', (value) => sql`hq.to_uuid(${value})`),
  toDate: date,
  to_date: date,
  toDateOrNull: date,
  toDateTime: time,
  toDateTime64: time,
  toDateTimeUS: time,
  toDateTimeOrNull: time,
  parseDateTimeBestEffort: time,
  parseDateTimeBestEffortOrNull: time,
  parseDateTime64BestEffort: time,
  parseDateTime64BestEffortOrNull: time,
  parseDateTime: custom(2, 3, (call) => {
    const { place, args, span } = call;
    const format = literalText(args[1], 'The format', span);
    const type = zoneAt(call, 2) ?? 'datetime';
    const picture = place.printer.parameters.add('text', inputFormat(format, span));
    return {
      sql: sql`hq.parse_datetime(${shortTime(coerced(place, args[0]!, 'string', span))}, ${picture}, ${zoneOf(place.printer, type)})`,
      type,
    };
  }),
  toJSONString: jsonText,
  toTypeName: custom(1, 1, ({ place, args }) => ({
    sql: place.printer.parameters.add('text', typeName(args[0]!.type)),
    type: 'string',
    certain: true,
  })),
  CAST: custom(2, 2, ({ place, args, span }) =>
    castTo(place, args[0]!, literalText(args[1], 'The type', span), span),
  ),
  accurateCastOrNull: custom(2, 2, ({ place, args, span }) =>
    castTo(place, args[0]!, literalText(args[1], 'The type', span), span),
  ),
  hex: custom(1, 1, ({ place, args, span }) => ({
    sql:
      args[0]!.type === 'int'
        ? sql`hq.hex_int(${args[0]!.sql})`
        : sql`upper(encode(convert_to(${within(place.printer.sizes.most(), coerced(place, args[0]!, 'string', span), 2)}, 'UTF8'), 'hex'))`,
    type: 'string',
    ...(args[0]!.type !== 'int' && { built: 2 }),
  })),
  unhex: of('s', 'string', (value) => sql`hq.unhex(${value})`),
  cityHash64: of('x x*', 'int', (...values) =>
    values
      .map((one) => sql`hashtextextended((${one})::text, 0)`)
      .reduce((left, right) => sql`(${left} # ${right})`),
  ),
  UUIDv7ToDateTime: custom(1, 2, (call) => ({
    sql: sql`hq.uuid_time(${coerced(call.place, call.args[0]!, 'uuid', call.span)})`,
    type: zoneAt(call, 1) ?? 'datetime',
  })),
  fromModifiedJulianDay: of(
    'f',
    'string',
    (days) => sql`hq.date_add(date '1858-11-17', hq.days(${days}))::text`,
  ),
  toModifiedJulianDay: of('d', 'int', (value) => sql`(${value} - date '1858-11-17')::bigint`),
};
