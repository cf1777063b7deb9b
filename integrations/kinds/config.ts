// Checks configurations. No message repeats a value: it may be a secret.
import type { z } from 'zod';
import { isSecret } from '../../values/marked-secrets.ts';
import type { RawConfig } from './kind.ts';
import type { AnyKind } from './registry.ts';

/** A configuration is not valid. */
export class KindConfigError extends Error {
  override readonly name = 'KindConfigError';
  /** Where in the configuration. */
  readonly path: readonly string[];
  readonly code: string;

  constructor(message: string, path: readonly string[] = [], code = 'invalid_input') {
    super(message);
    this.path = path;
    this.code = code;
  }
}

/**
 * Checks a configuration and returns it with its defaults. Throws a KindConfigError for the first fault: unknown keys come
 * first, then missing keys, then values.
 */
export function checkConfig({ kind, fields }: AnyKind, config: RawConfig): RawConfig {
  const { shape } = fields;
  if (Object.keys(config).some((key) => !Object.hasOwn(shape, key))) {
    throw new KindConfigError(
      `The configuration has a key that ${kind} does not know. It knows ${Object.keys(shape).join(', ')}.`,
    );
  }
  for (const [key, field] of Object.entries(shape)) {
    if (config[key] === undefined && !field.safeParse(undefined).success) {
      throw new KindConfigError('This field is required.', [key], 'required');
    }
  }
  const parsed = fields.safeParse(config, { reportInput: true });
  if (parsed.success) return parsed.data as RawConfig;
  throw ofIssue(parsed.error.issues[0] as z.core.$ZodIssue & { input?: unknown });
}

const TYPES: Readonly<Record<string, string>> = {
  string: 'Not a valid string.',
  array: 'Expected a list of items.',
};

function ofIssue(issue: z.core.$ZodIssue & { input?: unknown }): KindConfigError {
  const path = issue.path.map(String);
  const fault = (message: string, code?: string) => new KindConfigError(message, path, code);
  const isText = 'origin' in issue && issue.origin === 'string';
  if (issue.code === 'invalid_type' && issue.input === null)
    return fault('This field may not be null.', 'null');
  if (issue.code === 'invalid_type') return fault(TYPES[issue.expected] ?? 'This has the wrong type.');
  if (issue.code === 'too_small') {
    return isText
      ? fault('This field may not be blank.', 'blank')
      : fault('This list may not be empty.', 'empty');
  }
  if (issue.code === 'too_big') {
    return fault(
      `Ensure this field has no more than ${issue.maximum} ${isText ? 'characters' : 'elements'}.`,
      'max_length',
    );
  }
  if (issue.code === 'invalid_value') {
    return fault(`Not a valid choice. Use ${issue.values.join(' or ')}.`, 'invalid_choice');
  }
  return fault(issue.message);
}

/** Describes a key for the documentation. */
export function describeKey(field: z.ZodType) {
  const required = !field.safeParse(undefined).success;
  return { required, secret: isSecret(field), description: field.description ?? '' };
}
