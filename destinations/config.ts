import { z } from 'zod';
import { type Fields, isSecret } from '../values/marked-secrets.ts';
import { DestinationConfigError } from './errors.ts';

/** The configuration of a destination as plain JSON, with keys as in the API. */
export type RawConfig = Record<string, unknown>;

/** Marks a key as a secret. A secret is stored, but no answer and no message contains it. */
export function secret<T extends z.ZodType>(type: T, { mayBeBlank = false } = {}): T {
  return type.meta({ secret: true, ...(mayBeBlank ? { mayBeBlank } : {}) }) as T;
}

/** Whether somebody who sends a blank secret means a mistake: a form that was not filled in. */
const refusesBlanks = (field: z.ZodType) => isSecret(field) && field.meta()?.mayBeBlank !== true;

/** Keys that every destination has. */
export const eventNames = {
  include_events: z
    .array(z.string())
    .nullish()
    .describe('Export only events with these names. An empty list exports all events.'),
  exclude_events: z.array(z.string()).nullish().describe('Leave out events with these names.'),
};

/** The name of a value's type in messages of the API. */
function nameOf(value: unknown): string {
  if (value === null) return 'NoneType';
  if (Array.isArray(value)) return 'list';
  if (typeof value === 'number') return Number.isInteger(value) ? 'int' : 'float';
  return { string: 'str', boolean: 'bool', object: 'dict' }[typeof value as string] ?? typeof value;
}

interface Inner {
  type: z.ZodType;
  nullable: boolean;
}

function unwrap(type: z.ZodType): Inner {
  let nullable = false;
  let at = type;
  for (;;) {
    if (at instanceof z.ZodNullable) nullable = true;
    else if (!(at instanceof z.ZodOptional || at instanceof z.ZodDefault)) return { type: at, nullable };
    at = at.unwrap() as z.ZodType;
  }
}

function expectedName(type: z.ZodType): string {
  if (type instanceof z.ZodNumber) return 'int';
  if (type instanceof z.ZodBoolean) return 'bool';
  if (type instanceof z.ZodArray) return 'list';
  return 'str';
}

/** Forms send everything as text. Turns such texts into numbers and booleans. */
function coerce(value: unknown, expected: string): unknown {
  if (typeof value !== 'string') return value;
  const text = value.trim();
  if (expected === 'int' && /^[+-]?\d{1,15}$/.test(text)) return Number(text);
  if (expected === 'bool' && /^(true|1)$/i.test(text)) return true;
  if (expected === 'bool' && /^(false|0)$/i.test(text)) return false;
  return value;
}

function checkField(key: string, field: z.ZodType, given: unknown): unknown {
  const { type, nullable } = unwrap(field);
  const expected = expectedName(type);
  const value = coerce(given, expected);
  if (value === null && nullable) return value;
  const wrong = [value, ...(Array.isArray(value) && type instanceof z.ZodArray ? value : [])].find(
    (one, at) => (at === 0 ? nameOf(one) !== expected : nameOf(one) !== 'str'),
  );
  const strange = nameOf(value) !== expected ? expected : 'str';
  if (wrong !== undefined) {
    throw new DestinationConfigError(
      `Configuration has invalid type: got '${nameOf(wrong)}', expected '${strange}'`,
      key,
    );
  }
  return value;
}

const quoted = (names: readonly string[]) => names.map((name) => `'${name}'`).join(', ');
/** A list as error messages of the API write it. */
export const listText = (names: readonly string[]) => `[${quoted(names)}]`;

/**
 * Checks a configuration and returns what is stored: texts of forms become numbers and booleans, no default is added.
 * Throws the first fault. Unknown keys come first, then missing keys, types, blank secrets, and values.
 */
export function checkConfig(fields: Fields, given: unknown): RawConfig {
  if (nameOf(given) !== 'dict')
    throw new DestinationConfigError(
      `Configuration has invalid type: got '${nameOf(given)}', expected 'dict'`,
    );
  const config = given as RawConfig;
  const { shape } = fields;
  const unknown = Object.keys(config).filter((key) => !Object.hasOwn(shape, key));
  if (unknown.length > 0)
    throw new DestinationConfigError(`Configuration has unknown field/s: ${quoted(unknown.sort())}`);
  for (const [key, field] of Object.entries(shape)) {
    if (config[key] === undefined && !field.safeParse(undefined).success)
      throw new DestinationConfigError(`Configuration missing required field: '${key}'`, key);
  }
  const checked = Object.fromEntries(
    Object.entries(config)
      .filter(([, value]) => value !== undefined)
      .map(([key, value]) => [key, checkField(key, shape[key] as z.ZodType, value)]),
  );
  const blank = Object.keys(shape).filter((key) => {
    const value = checked[key];
    return typeof value === 'string' && value.trim() === '' && refusesBlanks(shape[key] as z.ZodType);
  });
  if (blank.length > 0)
    throw new DestinationConfigError(`The following inputs are empty: ${listText(blank)}`, blank[0]);
  const parsed = fields.safeParse(checked);
  if (!parsed.success) {
    const issue = parsed.error.issues[0] as z.core.$ZodIssue;
    throw new DestinationConfigError(
      issue.message,
      issue.path[0] === undefined ? undefined : String(issue.path[0]),
    );
  }
  return checked;
}

/** What a destination says of its configuration. */
interface Configured {
  fields: Fields;
  expand?(config: RawConfig): RawConfig;
}

/** The configuration with its keys as they are stored, not yet checked. */
export function expandConfig({ expand }: Configured, given: RawConfig): RawConfig {
  return expand && isObject(given) ? expand(given) : given;
}

/** Checks a configuration that somebody sent, and returns what is stored. */
export const readConfig = (destination: Configured, given: RawConfig): RawConfig =>
  checkConfig(destination.fields, expandConfig(destination, given));

const isObject = (value: unknown): value is RawConfig => nameOf(value) === 'dict';

/**
 * Applies a PATCH. Keys that it leaves out keep their values, including secrets. Null or another value replaces the
 * old one.
 */
export function mergeConfig(stored: RawConfig, sent: RawConfig): RawConfig {
  const merged = new Map<string, unknown>(Object.entries(stored));
  for (const [key, value] of Object.entries(sent)) {
    const old = merged.get(key);
    merged.set(key, isObject(old) && isObject(value) ? mergeConfig(old, value) : value);
  }
  return Object.fromEntries(merged);
}

/** The configuration as a run takes it: texts of forms are converted, and defaults filled in. It need not be valid. */
export function effectiveConfig({ shape }: Fields, config: RawConfig): RawConfig {
  return Object.fromEntries(
    Object.entries(shape).map(([key, field]) => {
      const value = coerce(config[key], expectedName(unwrap(field).type));
      const parsed = field.safeParse(value);
      return [key, parsed.success ? parsed.data : value];
    }),
  );
}

/** The values that no message may contain. */
export function secretValues(fields: Fields, config: RawConfig): string[] {
  return Object.entries(config)
    .filter(([key, value]) => isSecret(fields.shape[key]) && typeof value === 'string' && value !== '')
    .map(([, value]) => value as string);
}

export interface FieldDescription {
  /** The type as documentation names it. */
  type: string;
  required: boolean;
  secret: boolean;
  /** The default as JSON. Empty if there is none. */
  default: string;
  description: string;
}

const WORDS: Record<string, string> = { str: 'text', int: 'number', bool: 'boolean', list: 'texts' };

/** Describes a key for the documentation. */
export function describeField(field: z.ZodType): FieldDescription {
  const assumed = field.safeParse(undefined);
  return {
    type: WORDS[expectedName(unwrap(field).type)] as string,
    required: !assumed.success,
    secret: isSecret(field),
    default: assumed.data === undefined ? '' : JSON.stringify(assumed.data),
    description: field.description ?? '',
  };
}
