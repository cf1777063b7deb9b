// What a function is made of, as clients send it and as it is stored.
import { z } from 'zod';

const freeForm = z.record(z.string(), z.unknown());
const text = z.string();

/** One input that a function asks for. */
export const inputSchema = z
  .object({
    type: z.enum([
      'string',
      'number',
      'boolean',
      'dictionary',
      'choice',
      'json',
      'integration',
      'integration_field',
      'integration_multi',
      'email',
      'native_email',
      'non_failure_status_codes',
    ]),
    key: text.min(1).max(400),
    label: text.nullable().optional(),
    choices: z.array(freeForm).nullable().optional(),
    required: z.boolean().default(false),
    default: z.unknown().optional(),
    secret: z.boolean().default(false),
    hidden: z.boolean().default(false),
    description: text.nullable().optional(),
    integration: text.nullable().optional(),
    integration_key: text.nullable().optional(),
    requires_field: text.nullable().optional(),
    integration_field: text.nullable().optional(),
    requiredScopes: text.nullable().optional(),
    templating: z
      .union([z.boolean(), z.enum(['hog', 'liquid'])])
      .optional()
      .meta({
        description:
          'Whether texts may contain expressions in braces, and in which language if their input does not say. ' +
          'Default: in Hog.',
      }),
  })
  .meta({ id: 'FunctionInputSchema' });
export type InputSchema = z.output<typeof inputSchema>;

/** The value of an input, as a client sends it. */
export const inputValue = z
  .object({
    value: z.unknown().optional(),
    templating: z.enum(['hog', 'liquid']).optional(),
    secret: z.boolean().optional().meta({
      description: 'True without a value: the stored secret stays as it is.',
    }),
  })
  .meta({ id: 'FunctionInputValue' });
export type GivenInput = z.output<typeof inputValue>;

/** An input as it is stored: with its place in the order of evaluation, and compiled where it is a template. */
export interface StoredInput {
  value?: unknown;
  templating?: 'hog' | 'liquid';
  bytecode?: unknown;
  transpiled?: unknown;
  order?: number;
}
export type StoredInputs = Record<string, StoredInput>;

export const MASKING_SECONDS = { fewest: 60, most: 86_400 } as const;

export const masking = z
  .object({
    ttl: z.int().min(MASKING_SECONDS.fewest).max(MASKING_SECONDS.most).meta({
      description: 'For how many seconds after an invocation others of the same key are left out.',
    }),
    threshold: z
      .int()
      .nullable()
      .optional()
      .meta({ description: 'Lets every so many-th event of a key through.' }),
    hash: text.min(1).meta({ description: 'The template of the key.' }),
  })
  .meta({ id: 'FunctionMasking' });
export type GivenMasking = z.output<typeof masking>;

export const filters = freeForm.meta({
  id: 'FunctionFilters',
  description:
    'Which events the function runs for: `events`, `actions`, `properties`, `filter_test_accounts`. An empty object ' +
    'means every event.',
});
export type GivenFilters = z.output<typeof filters>;

const inputs = z.record(z.string(), inputValue.nullable());

export const mapping = z
  .object({
    name: text.max(400).nullable().optional(),
    disabled: z.boolean().optional(),
    inputs_schema: z.array(inputSchema).nullable().optional(),
    inputs: inputs.nullable().optional(),
    filters: filters.nullable().optional(),
  })
  .meta({ id: 'FunctionMapping' });
export type GivenMapping = z.output<typeof mapping>;

/** A mapping as it is stored. */
export interface StoredMapping extends Omit<GivenMapping, 'inputs' | 'filters'> {
  inputs?: StoredInputs;
  filters?: Record<string, unknown>;
}

export const contentFields = {
  hog: text,
  inputs_schema: z.array(inputSchema),
  inputs,
  filters,
  masking,
  mappings: z.array(mapping),
};

/** What decides what a function does. */
export interface Content {
  hog: string;
  inputs_schema: InputSchema[];
  inputs: Record<string, GivenInput | null>;
  filters: GivenFilters;
  masking: GivenMasking | null;
  mappings: GivenMapping[] | null;
}

/** The same, checked and compiled. Inputs include those that are secret. */
export interface CompiledContent extends Omit<Content, 'inputs' | 'masking' | 'mappings'> {
  inputs: StoredInputs;
  masking: (GivenMasking & { bytecode?: unknown }) | null;
  mappings: StoredMapping[] | null;
  bytecode: unknown[] | null;
  transpiled: string | null;
  /** What the program calls although nothing has this name, and the like. The function is stored all the same. */
  warnings: string[];
}

/** A field of a function is wrong. */
export interface Fault {
  /** The name of the field; `__` joins levels. */
  field: string;
  message: string;
  code?: string;
  /** Where exactly, if `message` is a sentence that clients know. */
  reason?: string;
}

/** Thrown where a field is wrong. */
export class FunctionError extends Error {
  override readonly name = 'FunctionError';
  readonly fault: Fault;

  constructor(field: string, message: string, more: Omit<Fault, 'field' | 'message'> = {}) {
    super(message);
    this.fault = { field, message, ...more };
  }
}
