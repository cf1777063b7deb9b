import type { FunctionRow } from '../rows/functions.ts';
import type { StoredInput, StoredInputs } from '../rules/definition.ts';
import type { ContentField } from '../rules/source.ts';

/** What takes the place of a secret input in an answer. */
export const HIDDEN = Object.freeze({ secret: true });

/** Returns inputs as the API shows them. A secret one is shown only if it has a value. */
const shownInputs = (
  inputs: StoredInputs,
  secretKeys: readonly string[],
): Record<string, StoredInput | typeof HIDDEN> => ({
  ...inputs,
  ...Object.fromEntries(secretKeys.map((key) => [key, HIDDEN])),
});

/** Returns what a function is made of as the API shows it, without secrets. */
export function shownContent(row: Pick<FunctionRow, ContentField | 'secret_keys'>) {
  const { secret_keys: keys } = row;
  return {
    hog: row.hog,
    inputs_schema: row.inputs_schema,
    inputs: shownInputs(row.inputs, keys.inputs),
    filters: row.filters,
    masking: row.masking,
    mappings:
      row.mappings?.map((one, index) => ({
        ...one,
        inputs: shownInputs(one.inputs ?? {}, keys.mappings[index] ?? []),
      })) ?? null,
  };
}
