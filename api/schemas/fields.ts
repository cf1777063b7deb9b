import { z } from 'zod';

/** A text that people write: trimmed, not blank, with a longest length. */
export const text = (max: number) => z.string().trim().min(1).max(max);
/** The same, but it may be empty. */
export const optionalText = (max: number) => z.string().trim().max(max);
export const timestamp = z.string().meta({ format: 'date-time' });
export const freeForm = z.record(z.string(), z.unknown());
export const timezone = z
  .string()
  .max(64)
  .refine((name) => isTimezone(name), {
    params: { code: 'invalid_choice' },
    error: 'Not a valid time zone.',
  });

function isTimezone(name: string): boolean {
  try {
    new Intl.DateTimeFormat('en', { timeZone: name });
    return /^[A-Za-z]/.test(name);
  } catch {
    return false;
  }
}

export const errorBody = z
  .object({
    type: z.enum([
      'authentication_error',
      'invalid_request',
      'validation_error',
      'throttled_error',
      'server_error',
    ]),
    code: z.string(),
    detail: z.string(),
    attr: z.string().nullable(),
  })
  .meta({
    id: 'Error',
    description: 'Every refusal has this form; `attr` names the field, nested ones joined by `__`.',
  });
