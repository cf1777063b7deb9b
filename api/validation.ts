import type { z } from 'zod';
import { ApiError, errors } from './errors.ts';

export interface FieldError {
  code: string;
  detail: string;
  attr: string | null;
}

type Issue = z.core.$ZodIssue & { input?: unknown };

function typeName(value: unknown): string {
  if (value === null) return 'NoneType';
  if (Array.isArray(value)) return 'list';
  if (typeof value === 'number') return Number.isInteger(value) ? 'int' : 'float';
  return { string: 'str', boolean: 'bool', object: 'dict' }[typeof value as string] ?? typeof value;
}

const plural = (count: number | bigint, word: string) => `${count} ${word}${Number(count) === 1 ? '' : 's'}`;

function wrongType(expected: string, input: unknown): Omit<FieldError, 'attr'> {
  if (input === undefined) return { code: 'required', detail: 'This field is required.' };
  if (input === null) return { code: 'null', detail: 'This field may not be null.' };
  switch (expected) {
    case 'string':
      return { code: 'invalid_input', detail: 'Not a valid string.' };
    case 'boolean':
      return { code: 'invalid_input', detail: 'Must be a valid boolean.' };
    case 'int':
      return { code: 'invalid_input', detail: 'A valid integer is required.' };
    case 'number':
      return { code: 'invalid_input', detail: 'A valid number is required.' };
    case 'array':
      return { code: 'not_a_list', detail: `Expected a list of items but got type "${typeName(input)}".` };
    case 'object':
    case 'record':
      return {
        code: 'not_a_dict',
        detail: `Expected a dictionary of items but got type "${typeName(input)}".`,
      };
    default:
      return { code: 'invalid_input', detail: `Expected ${expected} but got type "${typeName(input)}".` };
  }
}

const FORMATS: Record<string, string> = {
  uuid: 'Must be a valid UUID.',
  guid: 'Must be a valid UUID.',
  email: 'Enter a valid email address.',
  url: 'Enter a valid URL.',
  datetime:
    'Datetime has wrong format. Use one of these formats instead: YYYY-MM-DDThh:mm[:ss[.uuuuuu]][+HH:MM|-HH:MM|Z].',
  date: 'Date has wrong format. Use one of these formats instead: YYYY-MM-DD.',
};

function describe(issue: Issue): Omit<FieldError, 'attr'> {
  switch (issue.code) {
    case 'invalid_type':
      return wrongType(issue.expected, issue.input);
    case 'too_small':
      if (issue.origin === 'string') {
        return issue.minimum === 1
          ? { code: 'blank', detail: 'This field may not be blank.' }
          : {
              code: 'min_length',
              detail: `Ensure this field has at least ${plural(issue.minimum, 'character')}.`,
            };
      }
      if (issue.origin === 'array') {
        return issue.minimum === 1
          ? { code: 'empty', detail: 'This list may not be empty.' }
          : {
              code: 'min_length',
              detail: `Ensure this field has at least ${plural(issue.minimum, 'element')}.`,
            };
      }
      return { code: 'min_value', detail: `Ensure this value is greater than or equal to ${issue.minimum}.` };
    case 'too_big':
      if (issue.origin === 'string') {
        return {
          code: 'max_length',
          detail: `Ensure this field has no more than ${plural(issue.maximum, 'character')}.`,
        };
      }
      if (issue.origin === 'array') {
        return {
          code: 'max_length',
          detail: `Ensure this field has no more than ${plural(issue.maximum, 'element')}.`,
        };
      }
      return { code: 'max_value', detail: `Ensure this value is less than or equal to ${issue.maximum}.` };
    case 'invalid_value':
      if (issue.input === undefined || issue.input === null) return wrongType('string', issue.input);
      return { code: 'invalid_choice', detail: `${JSON.stringify(issue.input)} is not a valid choice.` };
    case 'invalid_format':
      return { code: 'invalid_input', detail: FORMATS[issue.format] ?? issue.message };
    case 'custom': {
      const code = (issue.params as { code?: string } | undefined)?.code;
      return { code: code ?? 'invalid_input', detail: issue.message };
    }
    case 'invalid_union': {
      if (issue.input === undefined || issue.input === null) return wrongType('string', issue.input);
      const branches = issue.errors as Issue[][];
      // The branch that matched deepest is most likely the one that the client meant.
      const best = branches.flat().sort((a, b) => b.path.length - a.path.length)[0];
      return best
        ? { code: 'invalid_input', detail: best.message }
        : { code: 'invalid_input', detail: issue.message };
    }
    default:
      return { code: 'invalid_input', detail: issue.message };
  }
}

/** Returns the first error of a schema in the words of the API. `__` joins the names of nested fields. */
export function fieldError(error: z.ZodError): FieldError {
  const issue = error.issues[0] as Issue;
  if (issue.code === 'unrecognized_keys') {
    const [key = ''] = issue.keys;
    const attr = [...issue.path.map(String), key].join('__');
    return { code: 'invalid_input', detail: `There is no field or parameter "${key}" here.`, attr };
  }
  const attr = issue.path.length > 0 ? issue.path.map(String).join('__') : null;
  if (attr === null && issue.code === 'invalid_type') {
    return {
      code: 'invalid_input',
      detail: `Invalid data. Expected a dictionary, but got ${typeName(issue.input)}.`,
      attr: null,
    };
  }
  return { ...describe(issue), attr };
}

/** Parses a value with a schema. Throws a validation error for the first thing that is wrong. */
export function validate<T extends z.ZodType>(schema: T, value: unknown): z.output<T> {
  const result = schema.safeParse(value, { reportInput: true });
  if (result.success) return result.data;
  const { code, detail, attr } = fieldError(result.error);
  throw errors.validation(code, detail, attr);
}

/** Compiles the schemas of routes for Fastify. */
export function validatorCompiler({ schema }: { schema: unknown }) {
  return (value: unknown): { value: unknown } | { error: Error } => {
    try {
      return { value: validate(schema as z.ZodType, value) };
    } catch (error) {
      if (error instanceof ApiError) return { error };
      throw error;
    }
  };
}

/** Refuses strings that Postgres cannot store, and names the field. */
export function refuseUnstorableText(value: unknown, path: string[] = []): void {
  if (typeof value === 'string') {
    const attr = path.length > 0 ? path.join('__') : null;
    if (value.includes('\u0000')) {
      throw errors.validation('null_characters_not_allowed', 'Null characters are not allowed.', attr);
    }
    if (!value.isWellFormed()) {
      throw errors.validation(
        'invalid_input',
        'The text is not valid Unicode: it has half of a surrogate pair.',
        attr,
      );
    }
  } else if (typeof value === 'object' && value !== null) {
    for (const [key, entry] of Object.entries(value)) {
      refuseUnstorableText(key, path);
      refuseUnstorableText(entry, [...path, key]);
    }
  }
}
