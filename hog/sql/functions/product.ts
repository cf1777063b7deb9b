// Functions that are not ClickHouse's.
import { sql } from '../sql.ts';
import { type FunctionTable, of } from './spec.ts';

export const PRODUCT: FunctionTable = {
  /** The numbers of the first `1.2.3` in a text: sorted as numbers, not as text. */
  sortableSemver: of('s', { array: 'int' }, (text) => sql`hq.sortable_semver(${text})`),
};
