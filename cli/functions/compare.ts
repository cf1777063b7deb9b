// Compares the result of a test with what a file expects.

import { z } from 'zod';
import { isObject } from '../../values/json-object.ts';
import { UsageError } from '../context.ts';
import type { Tried } from './tried.ts';

/** What a file expects of a test. What it leaves out may be anything. */
const expectation = z.strictObject({
  status: z.enum(['success', 'error', 'skipped']).optional(),
  result: z.unknown().optional(),
  errors: z.array(z.string()).optional(),
  logs: z.array(z.string()).optional(),
  fetches: z
    .array(
      z.strictObject({
        url: z.string().optional(),
        method: z.string().optional(),
        headers: z.record(z.string(), z.string()).optional(),
        body: z.unknown().optional(),
        status: z.int().optional(),
      }),
    )
    .optional(),
  captured: z.array(z.unknown()).optional(),
});
export type Expectation = z.output<typeof expectation>;

export function parseExpectation(value: unknown, file: string): Expectation {
  const parsed = expectation.safeParse(value);
  if (parsed.success) return parsed.data;
  const { path, message } = parsed.error.issues[0] as z.core.$ZodIssue;
  throw new UsageError(`${file}: ${path.length > 0 ? `${path.join('.')}: ` : ''}${message}`);
}

const shown = (value: unknown): string => (value === undefined ? 'nothing' : JSON.stringify(value));

/** Lists where two values differ. `partly`: keys that the expected object leaves out may have any value. */
function differences(expected: unknown, actual: unknown, path: string, partly = false): string[] {
  if (Array.isArray(expected) && Array.isArray(actual)) {
    const length = Math.max(expected.length, actual.length);
    return Array.from({ length }).flatMap((_, index) =>
      differences(expected[index], actual[index], `${path}[${index}]`, partly),
    );
  }
  if (isObject(expected) && isObject(actual)) {
    const keys = new Set([...Object.keys(expected), ...(partly ? [] : Object.keys(actual))]);
    return [...keys].flatMap((key) => {
      const own = (one: Record<string, unknown>) => (Object.hasOwn(one, key) ? one[key] : undefined);
      return differences(own(expected), own(actual), path === '' ? key : `${path}.${key}`);
    });
  }
  return Object.is(expected, actual) || JSON.stringify(expected) === JSON.stringify(actual)
    ? []
    : [`${path}: expected ${shown(expected)}, got ${shown(actual)}`];
}

/** A body is compared as JSON if the file expects no text. */
function bodyOf(text: string | null, expected: unknown): unknown {
  if (text === null || typeof expected === 'string') return text;
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/** Finds messages that the log does not have, or not in this order. It may have others between them. */
function missingMessages(expected: readonly string[], logs: Tried['logs']): string[] {
  let from = 0;
  return expected.flatMap((wanted, index) => {
    const at = logs.findIndex(({ message }, place) => place >= from && message === wanted);
    if (at < 0)
      return [
        `logs[${index}]: no message ${JSON.stringify(wanted)}${from > 0 ? ' after the ones before' : ''}`,
      ];
    from = at + 1;
    return [];
  });
}

/** Lists how a test differs from what is expected, one line for each place. */
export function unexpected(expected: Expectation, tried: Tried): string[] {
  const { fetches, logs, ...rest } = expected;
  const made = tried.invocations.flatMap((one) => one.fetches);
  const actual: Record<string, unknown> = {
    ...{ status: tried.status, result: tried.result, errors: tried.errors },
    captured: tried.invocations.flatMap((one) => one.captured),
  };
  const found = Object.entries(rest).flatMap(([key, value]) => differences(value, actual[key], key));
  found.push(...missingMessages(logs ?? [], tried.logs));
  if (!fetches) return found;
  if (fetches.length !== made.length) {
    found.push(`fetches: expected ${fetches.length}, got ${made.length}`);
  }
  for (const [index, one] of fetches.entries()) {
    const own = made[index];
    if (!own) continue;
    const lower = (headers: Record<string, string>) =>
      Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));
    const request: Record<string, unknown> = {
      ...{ url: own.url, method: own.method, headers: lower(own.headers) },
      ...{ body: bodyOf(own.body, one.body), status: own.response?.status },
    };
    for (const [key, value] of Object.entries(one)) {
      const wanted = key === 'headers' ? lower(value as Record<string, string>) : value;
      found.push(...differences(wanted, request[key], `fetches[${index}].${key}`, key === 'headers'));
    }
  }
  return found;
}
