// A function as a file: what it says, beside its program.
import { z } from 'zod';
import { filters, inputSchema, masking } from '../../functions/rules/definition.ts';
import { settleInputs } from '../../functions/rules/inputs.ts';
import { LAST_ORDER } from '../../functions/rules/limits.ts';
import { ON_ERROR } from '../../functions/rules/on-error.ts';
import { TYPE_NAMES } from '../../functions/rules/types.ts';
import type { RemoteFunction } from './remote.ts';

const input = z
  .strictObject({
    value: z.unknown().optional(),
    templating: z.enum(['hog', 'liquid']).optional(),
    secret: z.literal(true).optional(),
    env: z
      .string()
      .regex(/^[A-Za-z_][A-Za-z0-9_]*$/, 'Not the name of a variable.')
      .optional(),
  })
  .refine(
    (one) => ['value', 'secret', 'env'].filter((key) => Object.hasOwn(one, key)).length <= 1,
    'Give one of `value`, `secret` and `env`.',
  );
export type FileInput = z.output<typeof input>;

const inputs = z.record(z.string(), input);
const schemas = z.array(inputSchema.strict());
const mapping = z.strictObject({
  name: z.string().max(400).nullish(),
  disabled: z.boolean().optional(),
  filters: filters.nullish(),
  inputs_schema: schemas.nullish(),
  inputs: inputs.nullish(),
});
export type FileMapping = z.output<typeof mapping>;

/** The content of the file beside a program. What it leaves out is empty, except where a description says otherwise. */
export const definition = z.strictObject({
  id: z.guid().optional(),
  name: z.string().trim().max(400).nullable(),
  type: z.enum(TYPE_NAMES).default('destination'),
  description: z.string().trim().default(''),
  enabled: z.boolean().optional().describe('Left out: it stays as it is.'),
  template_id: z.string().max(400).optional().describe('Only counts when the function is created.'),
  icon_url: z.string().max(2_000).optional().describe('Left out: it stays as it is.'),
  execution_order: z.int().min(0).max(LAST_ORDER).optional().describe('Left out: it stays as it is.'),
  on_error: z.enum(ON_ERROR).optional().describe('Left out: it stays as it is.'),
  filters: filters.default({}),
  inputs_schema: schemas.default([]),
  inputs: inputs.default({}),
  mappings: z.array(mapping).nullable().default(null),
  masking: masking.strict().nullable().default(null),
});
export type Definition = z.output<typeof definition>;

type Json = Record<string, unknown>;

/** Copies an object without some of its keys. */
const without = (value: Json, ...keys: string[]): Json =>
  Object.fromEntries(Object.entries(value).filter(([key]) => !keys.includes(key)));

/** Sorts inputs like their schemas. The order in which the server stores them is that of their evaluation. */
function inOrder<T>(all: Readonly<Record<string, T>>, keys: readonly { key: string }[]): Record<string, T> {
  const place = new Map(keys.map(({ key }, index) => [key, index]));
  const sorted = Object.entries(all).toSorted(([a], [b]) => (place.get(a) ?? 0) - (place.get(b) ?? 0));
  return Object.fromEntries(sorted);
}

const shortSchema = (one: Json): Json =>
  Object.fromEntries(
    Object.entries(one).filter(
      ([key, value]) => !(value === false && ['required', 'secret', 'hidden'].includes(key)),
    ),
  );

const inputsToFile = (all: Json | null | undefined, keys: readonly { key: string }[]): Json =>
  Object.fromEntries(
    Object.entries(inOrder(all ?? {}, keys)).map(([key, one]) => [
      key,
      without(one as Json, 'bytecode', 'transpiled', 'order'),
    ]),
  );

const filtersToFile = (given: Json | null | undefined): Json =>
  without(given ?? {}, 'bytecode', 'bytecode_error', 'transpiled');

const isFilled = (value: unknown): boolean =>
  value !== null && value !== undefined && (typeof value !== 'object' || Object.keys(value).length > 0);

const filledOnly = (all: Json): Json =>
  Object.fromEntries(Object.entries(all).filter(([, value]) => isFilled(value)));

function mappingToFile(given: Json): Json {
  const keys = (given.inputs_schema ?? []) as { key: string }[];
  return filledOnly({
    ...{ name: given.name, disabled: given.disabled },
    filters: filtersToFile(given.filters as Json),
    inputs_schema: keys.map((one) => shortSchema(one as Json)),
    inputs: inputsToFile(given.inputs as Json, keys),
  });
}

/** What a file says about a function of the server: without its program, its secrets, and all that is computed. */
export function toFile(remote: RemoteFunction): Json {
  const { inputs_schema: keys, mappings } = remote;
  return {
    id: remote.id,
    name: remote.name,
    type: remote.type,
    ...filledOnly({ description: remote.description || undefined }),
    enabled: remote.enabled,
    ...filledOnly({
      template_id: remote.template_id,
      icon_url: remote.icon_url,
      ...{ execution_order: remote.execution_order, on_error: remote.on_error },
      filters: filtersToFile(remote.filters),
      inputs_schema: keys.map((one) => shortSchema(one)),
      inputs: inputsToFile(remote.inputs, keys),
    }),
    // An empty list says that the function never runs. That is not the same as no list.
    ...(mappings ? { mappings: mappings.map(mappingToFile) } : {}),
    ...(remote.masking ? { masking: without(remote.masking, 'bytecode') } : {}),
  };
}

/** Stands for a secret that the server keeps. */
const KEPT = { value: '\u0000kept' };

function settled(keys: Definition['inputs_schema'], given: Definition['inputs'], stored: readonly string[]) {
  const secrets = Object.fromEntries(stored.map((key) => [key, KEPT]));
  // What comes from the environment cannot be compared.
  const shown = Object.fromEntries(
    Object.entries(given).map(([key, { env, ...one }]) => [key, env === undefined ? one : { secret: true }]),
  );
  return settleInputs(keys, shown, secrets, 'inputs').map(({ schema, input }) => [schema.key, input]);
}

/** The keys of secret inputs that have a value on the server. */
const secretKeys = (all: Json | null | undefined): string[] =>
  Object.entries(all ?? {}).flatMap(([key, one]) => ((one as Json).secret === true ? [key] : []));

/**
 * Writes what a function does in one form, so that two of them are the same text if they do the same. `remote` says
 * which secrets the server has.
 */
function canonical(program: string, one: Definition, remote: RemoteFunction): string {
  const { events: _events, actions: _actions, ...common } = one.filters;
  const hasMappings = one.mappings !== null && one.mappings.length > 0;
  return JSON.stringify([
    ...[program, one.name, one.description],
    ...[one.enabled ?? remote.enabled, one.icon_url ?? remote.icon_url],
    ...[one.execution_order ?? remote.execution_order, one.on_error ?? remote.on_error],
    // Mappings choose the events, so the server leaves these out.
    filtersToFile(hasMappings ? common : one.filters),
    ...[one.inputs_schema, settled(one.inputs_schema, one.inputs, secretKeys(remote.inputs)), one.masking],
    one.mappings?.map((own, index) => [
      ...[own.name ?? null, own.disabled ?? false, filtersToFile(own.filters), own.inputs_schema ?? []],
      settled(
        own.inputs_schema ?? [],
        own.inputs ?? {},
        secretKeys(remote.mappings?.[index]?.inputs as Json | undefined),
      ),
    ]) ?? null,
  ]);
}

/** Answers whether the files and the server say the same. Nobody can compare secrets: they count as the same. */
export function isSame(program: string, local: Definition, remote: RemoteFunction): boolean {
  try {
    const shown = definition.parse(toFile(remote));
    return canonical(program, local, remote) === canonical(remote.hog, shown, remote);
  } catch {
    // The server says what is wrong with an input.
    return false;
  }
}

/** All inputs that say `env`: in which list of inputs, by which key, and the name of the variable. */
export function namedVariables(one: Definition): { path: string; variable: string }[] {
  const lists = [one.inputs, ...(one.mappings ?? []).map((own) => own.inputs ?? {})];
  return lists.flatMap((list, index) =>
    Object.entries(list).flatMap(([key, { env }]) => {
      const path = index === 0 ? `inputs.${key}` : `mappings.${index - 1}.inputs.${key}`;
      return env === undefined ? [] : [{ path, variable: env }];
    }),
  );
}
