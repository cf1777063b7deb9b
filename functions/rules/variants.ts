import type { Bytecode } from '../../hog/bytecode/index.ts';
import type { CompiledContent, InputSchema, StoredInputs } from './definition.ts';

/** A set of inputs under which the program of a function runs, if its filters match. */
export interface Variant {
  /** The name of the mapping. Null: the function has none. */
  mapping: string | null;
  /** Whether the mapping is switched off: it runs for no event. */
  isDisabled: boolean;
  inputs: StoredInputs;
  schemas: readonly InputSchema[];
}

/** The function once for each mapping, or once. A mapping's inputs come after those of the function and win. */
export function variantsOf({ inputs, inputs_schema: schemas, mappings }: CompiledContent): Variant[] {
  if (!mappings) return [{ mapping: null, isDisabled: false, inputs, schemas }];
  const shift = Object.keys(inputs).length;
  return mappings.map((one, index): Variant => {
    const own = Object.entries(one.inputs ?? {});
    return {
      mapping: one.name ?? `Mapping ${index + 1}`,
      isDisabled: one.disabled === true,
      inputs: {
        ...inputs,
        ...Object.fromEntries(
          own.map(([key, input]) => [key, { ...input, order: (input.order ?? 0) + shift }]),
        ),
      },
      schemas: [...schemas, ...(one.inputs_schema ?? [])],
    };
  });
}

/** The filters of a function, and those of each mapping. Null: they could not be compiled. */
export interface FunctionFilters {
  own: Bytecode | null;
  /** Null: the function has no mappings, and runs once. */
  mappings: (Bytecode | null)[] | null;
}

/** `false`, which matches no event. Takes the place of the filters of a mapping that is switched off. */
const NEVER: Bytecode = ['_H', 1, 30];

const bytecodeOf = (filters: Record<string, unknown> | undefined) =>
  (filters?.bytecode ?? null) as Bytecode | null;

export const filtersOf = ({
  filters,
  mappings,
}: Pick<CompiledContent, 'filters' | 'mappings'>): FunctionFilters => ({
  own: bytecodeOf(filters),
  mappings: mappings?.map((one) => (one.disabled ? NEVER : bytecodeOf(one.filters))) ?? null,
});
