import type { InputSchema, StoredInputs } from './definition.ts';

/** Answers whether a status of an answer is no failure, although it is 400 or more. */
export type ExpectsStatus = (status: number) => boolean;

/** Reads which statuses inputs of the type `non_failure_status_codes` name: 404, or all of `4xx`. */
export function expectedStatuses(schemas: readonly InputSchema[], inputs: StoredInputs): ExpectsStatus {
  const named = schemas
    .filter(({ type }) => type === 'non_failure_status_codes')
    .flatMap(({ key }) => {
      const value = inputs[key]?.value;
      return Array.isArray(value) ? value : [];
    });
  const expected = new Set(named.map((one) => String(one).toLowerCase()));
  return (status) => expected.has(String(status)) || expected.has(`${Math.floor(status / 100)}xx`);
}
