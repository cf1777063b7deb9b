// Numbers as people read them.

import { coerced } from '../coerce.ts';
import { fault } from '../errors.ts';
import { join, type Sql, sql } from '../sql.ts';
import { custom, type FunctionSpec, type FunctionTable, literalText, of } from './spec.ts';

/** Declares a function that writes a number with the largest unit that it has one of. */
const withUnit = (base: Sql, units: Sql[]): FunctionSpec =>
  of('f', 'string', (value) => sql`hq.readable(${value}, ${base}, array[${join(units)}])`);

const BINARY = [
  sql`' B'`,
  sql`' KiB'`,
  sql`' MiB'`,
  sql`' GiB'`,
  sql`' TiB'`,
  sql`' PiB'`,
  sql`' EiB'`,
  sql`' ZiB'`,
  sql`' YiB'`,
];
const DECIMAL = [
  sql`' B'`,
  sql`' KB'`,
  sql`' MB'`,
  sql`' GB'`,
  sql`' TB'`,
  sql`' PB'`,
  sql`' EB'`,
  sql`' ZB'`,
  sql`' YB'`,
];
const COUNTS = [
  ...[sql`''`, sql`' thousand'`, sql`' million'`, sql`' billion'`, sql`' trillion'`, sql`' quadrillion'`],
  ...[sql`' quintillion'`, sql`' sextillion'`, sql`' septillion'`],
];

const UNITS = ['years', 'months', 'days', 'hours', 'minutes', 'seconds'];

export const READABLE: FunctionTable = {
  formatReadableSize: withUnit(sql`1024`, BINARY),
  formatReadableDecimalSize: withUnit(sql`1000`, DECIMAL),
  formatReadableQuantity: withUnit(sql`1000`, COUNTS),
  formatReadableTimeDelta: custom(1, 2, ({ place, args, span }) => {
    const most = args[1] ? literalText(args[1], 'The largest unit', span) : 'years';
    if (!UNITS.includes(most)) throw fault(`The largest unit must be one of ${UNITS.join(', ')}`, span);
    const unit = place.printer.parameters.add('text', most);
    return {
      sql: sql`hq.readable_seconds(${coerced(place, args[0]!, 'float', span)}, ${unit})`,
      type: 'string',
    };
  }),
};
