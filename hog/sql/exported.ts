import { isZoned, type Type } from './types.ts';

/** A type that files of every format know. `strings` is a list of texts. */
export type FileType = 'string' | 'json' | 'uuid' | 'int64' | 'float64' | 'bool' | 'timestamp' | 'strings';

/** Returns the type of a column in a file, and SQL around the name of the column that gives values of it. */
export function exported(type: Type): [FileType, (name: string) => string] {
  // A time is an instant, whatever its zone.
  if (isZoned(type)) return exported('datetime');
  if (typeof type === 'object') {
    if ('array' in type && type.array === 'string') return ['strings', (name) => `${name}::text[]`];
    return ['json', (name) => `to_json(${name})::text`];
  }
  switch (type) {
    case 'int':
      return ['int64', (name) => `${name}::bigint`];
    case 'float':
      return ['float64', (name) => `${name}::float8`];
    case 'bool':
      return ['bool', (name) => `${name}::boolean`];
    case 'datetime':
      return ['timestamp', (name) => `${name}::timestamptz`];
    case 'uuid':
      return ['uuid', (name) => `${name}::uuid`];
    case 'json':
      return ['json', (name) => `${name}::text`];
    case 'date':
      return ['string', (name) => `to_char(${name}, 'YYYY-MM-DD')`];
    default:
      return ['string', (name) => `${name}::text`];
  }
}
