import { z } from 'zod';
import { isNamedZone } from '../values/zones.ts';
import { agoOf, isoTextOf, millisecondsOf, utcTextOf } from './moment.ts';

/** A text that people write. It is trimmed and must not be blank. */
export const text = (max: number) => atMost(max, z.string().trim().min(1));
/** A text that people write. It is trimmed and may be empty. */
export const optionalText = (max: number) => atMost(max, z.string().trim());

/** Limits the number of characters. Some characters take two places in a JavaScript string. */
function atMost(max: number, type: z.ZodString) {
  return type
    .refine((value) => value.length <= max || [...value].length <= max, {
      params: { code: 'max_length' },
      error: `Ensure this field has no more than ${max} characters.`,
    })
    .meta({ maxLength: max });
}

export const timestamp = z.string().meta({ format: 'date-time' });
/** Returns whether a time lies in the years that Postgres, Temporal and ISO 8601 write alike. */
const isInRange = (text: string) => /^(?!0000)\d{4}-/.test(text);

/** Converts a time that `isoTextOf` returned to UTC, in milliseconds. */
const toMilliseconds = (text: string): string => new Date(millisecondsOf(text)).toISOString();

const inUtc = (given: z.ZodString, written = toMilliseconds) =>
  given
    .superRefine((text, context) => {
      const found = isoTextOf(text);
      if (found === undefined || !/[T ]/i.test(text)) {
        context.addIssue({ code: 'invalid_format', format: 'datetime', input: text, continue: false });
      } else if (!isInRange(new Date(millisecondsOf(found)).toISOString())) {
        context.addIssue({
          code: 'custom',
          message: 'Datetime value out of range.',
          input: text,
          continue: false,
        });
      }
    })
    .overwrite((text) => written(isoTextOf(text) as string));

/**
 * A time that a client sends, in UTC unless it has an offset. The value is converted to UTC, because Postgres reads
 * fewer offsets than ISO 8601 allows.
 */
export const instant = inUtc(z.string()).meta({ format: 'date-time' });
/** The same, with its microseconds: a time that an answer has shown, by which something is found again. */
export const exactInstant = inUtc(z.string(), utcTextOf).meta({ format: 'date-time' });
/** A time that a client sends, or a day, which begins at midnight. In UTC, unless it has an offset. */
export const instantOrDate = inUtc(
  z.string().overwrite((text) => (/^\d{4}-\d\d-\d\d$/.test(text) ? `${text}T00:00:00Z` : text)),
).meta({ format: 'date-time' });
/** A time that a client sends, or how long ago it was, such as `-7d` or `-1h`. */
export const instantOrAgo = inUtc(z.string().overwrite((text) => agoOf(text) ?? text));
export const freeForm = z.record(z.string(), z.unknown());
export const timezone = z
  .string()
  .max(64)
  .refine((name) => isNamedZone(name), {
    params: { code: 'invalid_choice' },
    error: ({ input }) => `${JSON.stringify(input)} is not a valid choice.`,
  });

export const errorBody = z
  .object({
    type: z.enum([
      'authentication_error',
      'invalid_request',
      'validation_error',
      'throttled_error',
      'server_error',
      'quota_limited',
    ]),
    code: z.string(),
    detail: z.string(),
    attr: z.string().nullable(),
    errors: z.array(z.object({ index: z.int(), reason: z.string() })).optional(),
    reason: z.string().optional(),
  })
  .meta({
    id: 'Error',
    description:
      'The form of every error. `attr` names the field that is wrong; `__` joins the names of nested fields.',
  });
