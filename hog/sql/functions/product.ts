// Functions that ClickHouse does not have.
import { sql } from '../sql.ts';
import { type FunctionTable, of } from './spec.ts';

export const PRODUCT: FunctionTable = {
  /** Returns the numbers of the first `1.2.3` in a text, so that versions sort by number. */
  sortableSemver: of('s', { array: 'int' }, (text) => sql`hq.sortable_semver(${text})`),
};
