import type { TableRules } from '../../models/index.ts';

/** Whether rows can be recognised. Otherwise the table belongs to the export as a whole, see own-table.ts. */
export const hasKey = ({ keys }: TableRules): boolean => keys.length > 0;

/** The best key whose columns are all there. Undefined if there is none. */
export const keyOf = ({ keys }: TableRules, names: ReadonlySet<string>): readonly string[] | undefined =>
  keys.find((key) => key.every((name) => names.has(name)));

/** The columns that tell which of two rows is newer and that are not there. */
export const absentOrder = ({ newer }: TableRules, names: ReadonlySet<string>): readonly string[] =>
  (newer?.order ?? []).filter((name) => !names.has(name));

/** Names the possible keys, for messages. */
export const keysText = ({ keys }: TableRules): string => keys.map((key) => key.join(' and ')).join(', or ');
