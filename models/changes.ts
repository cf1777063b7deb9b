// What models share whose rows are those that changed within an interval.
import { timestamptzText } from '../db/timestamptz.ts';
import type { Parameters, Sql, Table, Type } from '../hog/sql/index.ts';
import type { OpenInterval } from '../intervals/index.ts';

/** Adds the bounds of an interval to the parameters of a statement. */
export const boundsOf = ({ start, end }: OpenInterval, parameters: Pick<Parameters, 'add'>): [Sql, Sql] => [
  parameters.add('timestamptz', start === null ? '-infinity' : timestamptzText(start)),
  parameters.add('timestamptz', timestamptzText(end)),
];

type Of = (table: Sql) => Sql;

/** A field that is never null. */
export const certain = (type: Type, of: Of): Table['fields'][string] => ({
  ...{ kind: 'column', certain: true },
  ...{ type, of },
});

/** A field that may be null. */
export const uncertain = (type: Type, of: Of): Table['fields'][string] => ({ kind: 'column', type, of });
