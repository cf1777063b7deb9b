import { isObject } from '../../values/json-object.ts';
import {
  FunctionError,
  type GivenInput,
  type InputSchema,
  type StoredInput,
  type StoredInputs,
} from './definition.ts';

/** What interfaces show in place of a secret. A client that sends it back means the stored value. */
export const MASK = '********';
const NO_SECRET = 'No value is saved for this secret input. Enter the value again.';

/** An input that has a value of the right type. Texts in it are not compiled yet. */
export interface SettledInput {
  schema: InputSchema;
  input: StoredInput;
  /** Whether its texts are templates. */
  isTemplate: boolean;
}

/** Answers whether a value counts as absent: it is stored, but neither checked nor compiled. */
function isBlank(value: unknown): boolean {
  if (value === undefined || value === null || value === false || value === 0 || value === '') return true;
  return typeof value === 'object' && Object.keys(value).length === 0;
}

/** Answers whether the client says that the stored secret stays. */
export const keepsSecret = (given: GivenInput | null | undefined): boolean =>
  !given || given.value === MASK || given.value === undefined;

const isStatusCode = (value: unknown): boolean =>
  (Number.isInteger(value) && (value as number) >= 400 && (value as number) <= 599) ||
  value === '4xx' ||
  value === '5xx';

const EMAIL_FIELDS = ['from', 'to', 'subject'] as const;

function emailFault(value: unknown): string | undefined {
  if (!isObject(value)) return 'Value must be an email object.';
  const missing = EMAIL_FIELDS.find((field) => isBlank(value[field]));
  if (missing) return `Missing value for '${missing}'.`;
  return isBlank(value.text) && isBlank(value.html) ? "Either 'text' or 'html' is required." : undefined;
}

type Check = (value: unknown, schema: InputSchema, input: StoredInput) => string | undefined;

const expects =
  (test: (value: unknown) => boolean, message: string): Check =>
  (value) =>
    test(value) ? undefined : message;

const CHECKS: Partial<Record<InputSchema['type'], Check>> = {
  string: expects((value) => typeof value === 'string', 'Value must be a string.'),
  number: expects((value) => typeof value === 'number', 'Value must be a number.'),
  boolean: (value, { templating }, input) => {
    if (typeof value === 'boolean') return undefined;
    if (templating === false) return 'Value must be a boolean.';
    if (typeof value !== 'string') return 'Value must be a boolean or a template string.';
    return input.templating === 'liquid'
      ? 'Liquid templating is not supported for boolean fields: its result is always a text.'
      : undefined;
  },
  dictionary: expects(isObject, 'Value must be a dictionary.'),
  integration: expects((value) => Number.isInteger(value), 'Value must be an Integration ID.'),
  integration_multi: expects(
    (value) => Array.isArray(value) && value.every(Number.isInteger),
    'Value must be a list of Integration IDs.',
  ),
  email: emailFault,
  native_email: emailFault,
  non_failure_status_codes: expects(
    (value) => Array.isArray(value) && value.every(isStatusCode),
    "Value must be a list of status codes from 400 to 599, '4xx' or '5xx'.",
  ),
};

const COMPILED: ReadonlySet<InputSchema['type']> = new Set([
  ...(['string', 'dictionary', 'json', 'boolean', 'email', 'native_email'] as const),
]);

const INTEGRATION_TYPES: ReadonlySet<string> = new Set([
  ...(['integration', 'integration_field', 'integration_multi'] as const),
]);
const INTEGRATION_FIELDS = [
  ...(['integration', 'integration_key', 'integration_field', 'requires_field', 'requiredScopes'] as const),
] as const;

/**
 * Completes a schema that a client sends again without what it does not know: which integrations an input takes. `known`
 * is the schema as it was before.
 */
export function keepIntegrations(
  schemas: readonly InputSchema[],
  known: readonly InputSchema[],
): InputSchema[] {
  const before = new Map(known.map((one) => [one.key, one]));
  return schemas.map((schema) => {
    const same = before.get(schema.key);
    if (!INTEGRATION_TYPES.has(schema.type) || same?.type !== schema.type) return schema;
    const kept = INTEGRATION_FIELDS.filter((name) => schema[name] === undefined && same[name] !== undefined);
    return { ...schema, ...Object.fromEntries(kept.map((name) => [name, same[name]])) };
  });
}

/** Refuses a schema that names a key twice: only one of the two values could be stored. */
export function requireUniqueKeys(schemas: readonly InputSchema[], field: string): void {
  const seen = new Set<string>();
  for (const [index, { key }] of schemas.entries()) {
    if (seen.has(key)) {
      throw new FunctionError(`${field}__${index}__key`, `The key ${JSON.stringify(key)} is used twice.`);
    }
    seen.add(key);
  }
}

/**
 * Checks the inputs that a schema asks for, in its order. Inputs that it does not name are dropped. `stored` has the
 * secret inputs that were saved before, `field` is the name of the inputs in errors.
 */
export function settleInputs(
  schemas: readonly InputSchema[],
  given: Readonly<Record<string, GivenInput | null>>,
  stored: StoredInputs,
  field: string,
): SettledInput[] {
  return schemas.flatMap((schema) => {
    const own = Object.hasOwn(given, schema.key) ? given[schema.key] : undefined;
    return settleInput(schema, own, stored, `${field}__${schema.key}`) ?? [];
  });
}

function settleInput(
  schema: InputSchema,
  given: GivenInput | null | undefined,
  stored: StoredInputs,
  field: string,
): SettledInput | undefined {
  let input: StoredInput = givenPart(given);
  if (schema.secret && keepsSecret(given)) {
    const kept = Object.hasOwn(stored, schema.key) ? stored[schema.key] : undefined;
    if (!kept && (given?.secret || given?.value === MASK)) throw new FunctionError(field, NO_SECRET);
    input = givenPart(kept);
  }
  if (schema.required && isMissing(input.value)) {
    if (isMissing(schema.default)) throw new FunctionError(field, 'This field is required.');
    input = { ...input, value: schema.default };
  }
  if (!Object.hasOwn(input, 'value')) return undefined;
  if (isBlank(input.value)) return { schema, input, isTemplate: false };
  if (schema.templating === 'liquid' && COMPILED.has(schema.type)) input = { templating: 'liquid', ...input };
  const fault = CHECKS[schema.type]?.(input.value, schema, input);
  if (fault) throw new FunctionError(field, fault);
  const isTemplate =
    COMPILED.has(schema.type) && schema.templating !== false && input.templating !== 'liquid';
  return { schema, input, isTemplate };
}

const isMissing = (value: unknown) => value === undefined || value === null || value === '';

/** The value of an input, without what is computed from it. */
function givenPart(input: GivenInput | StoredInput | null | undefined): StoredInput {
  const { value, templating } = input ?? {};
  return {
    ...(value === undefined ? {} : { value }),
    ...(templating === undefined ? {} : { templating }),
  };
}

/**
 * Sorts inputs so that each comes after those that its templates read, and otherwise as in the schema. Throws if they
 * read each other in a circle.
 */
export function sortInputs(reads: ReadonlyMap<string, readonly string[]>, field: string): string[] {
  const left = new Map(
    [...reads].map(([key, names]) => [key, new Set(names.filter((name) => reads.has(name)))]),
  );
  const readers = new Map<string, string[]>();
  for (const [key, names] of left) {
    for (const name of names) readers.set(name, [...(readers.get(name) ?? []), key]);
  }
  const ready = [...left].filter(([, names]) => names.size === 0).map(([key]) => key);
  for (let index = 0; index < ready.length; index += 1) {
    const done = ready[index] as string;
    for (const reader of readers.get(done) ?? []) {
      const names = left.get(reader) as Set<string>;
      names.delete(done);
      if (names.size === 0) ready.push(reader);
    }
  }
  if (ready.length < reads.size) {
    throw new FunctionError(field, 'Circular dependency detected in input_deps.', {
      reason: `The inputs ${circle(left, new Set(ready)).join(' → ')} read each other.`,
    });
  }
  return ready;
}

/** Follows inputs that wait for each other until one comes again. */
function circle(left: ReadonlyMap<string, ReadonlySet<string>>, done: ReadonlySet<string>): string[] {
  const path: string[] = [];
  let key = [...left.keys()].find((one) => !done.has(one)) as string;
  while (!path.includes(key)) {
    path.push(key);
    key = [...(left.get(key) as ReadonlySet<string>)].find((one) => !done.has(one)) as string;
  }
  return [...path.slice(path.indexOf(key)), key];
}
