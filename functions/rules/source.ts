// What users write of a function, without what Sluice computes from it. Drafts and revisions consist of this.
import { isDeepStrictEqual } from 'node:util';
import type {
  CompiledContent,
  GivenMasking,
  InputSchema,
  StoredInputs,
  StoredMapping,
} from './definition.ts';

/** The fields that decide what a function does. */
export const CONTENT = ['hog', 'inputs_schema', 'inputs', 'filters', 'masking', 'mappings'] as const;
export type ContentField = (typeof CONTENT)[number];

/** What users write of a function. Secret inputs are kept apart. */
export interface SourceContent {
  hog: string;
  inputs_schema: InputSchema[];
  inputs: StoredInputs;
  filters: Record<string, unknown>;
  masking: GivenMasking | null;
  mappings: StoredMapping[] | null;
}

/** Returns inputs without their code and their place in the order of evaluation. */
export const sourceInputs = (inputs: StoredInputs): StoredInputs =>
  Object.fromEntries(
    Object.entries(inputs).map(([key, { bytecode: _code, transpiled: _script, order: _order, ...given }]) => [
      key,
      given,
    ]),
  );

function sourceFilters(filters: Record<string, unknown>): Record<string, unknown> {
  const { bytecode: _code, bytecode_error: _error, transpiled: _script, ...document } = filters;
  return document;
}

function sourceMasking(masking: CompiledContent['masking']): GivenMasking | null {
  if (!masking) return null;
  const { bytecode: _code, ...given } = masking;
  return given;
}

/** Returns what a user wrote, without what was computed from it. */
export function sourceOf(content: Pick<CompiledContent, ContentField>): SourceContent {
  const source: SourceContent = {
    hog: content.hog,
    inputs_schema: content.inputs_schema,
    inputs: sourceInputs(content.inputs),
    filters: sourceFilters(content.filters),
    masking: sourceMasking(content.masking),
    mappings:
      content.mappings?.map((one) => ({
        ...one,
        inputs: sourceInputs(one.inputs ?? {}),
        filters: sourceFilters(one.filters ?? {}),
      })) ?? null,
  };
  // As the database returns it: a member that is undefined is not there.
  return JSON.parse(JSON.stringify(source)) as SourceContent;
}

/** Lists the fields in which two functions differ, in the order of the alphabet. */
export const otherFields = (one: SourceContent, other: SourceContent): ContentField[] =>
  CONTENT.filter((field) => !isDeepStrictEqual(one[field], other[field])).toSorted();
