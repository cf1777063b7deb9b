import type { FastifyRequest } from 'fastify';
import { z } from 'zod';
import { isUuid } from '../values/uuid.ts';
import { errors } from './errors.ts';

const MAX_LIMIT = 1000;

/**
 * The schema of a page that continues from a position. A reader sees each element once, even if others are added
 * meanwhile.
 */
export const cursorPage = <T extends z.ZodType>(item: T) =>
  z.object({
    next: z.string().nullable(),
    previous: z.string().nullable(),
    results: z.array(item),
  });

/** The query parameters of every list with cursors. */
export const cursorQuery = z.strictObject({
  cursor: z
    .string()
    .optional()
    .meta({ description: 'The position of a page. The links `next` and `previous` contain it.' }),
  limit: z
    .string()
    .regex(/^\d{1,15}$/, 'A valid integer is required.')
    .transform((text) => Math.min(Number(text), MAX_LIMIT))
    .refine((value) => value >= 1, 'Ensure this value is greater than or equal to 1.')
    .optional()
    .meta({ type: 'integer', description: `Results per page, at most ${MAX_LIMIT}.` }),
});

/** A parameter that may be repeated: `?status=a&status=b`. */
export const several = <T extends z.ZodType>(item: T) =>
  z.preprocess(
    (value) => (value === undefined || Array.isArray(value) ? value : [value]),
    z.array(item).optional(),
  );

interface Position {
  value: string | null;
  id: string;
}
interface Cursor extends Position {
  /** True if the page ends at the position, false if it begins there. */
  back: boolean;
}

function write({ value, id, back }: Cursor): string {
  return Buffer.from(JSON.stringify([value, id, back ? 1 : 0])).toString('base64url');
}

function read(text: string): Cursor {
  try {
    const [value, id, back] = JSON.parse(Buffer.from(text, 'base64url').toString('utf8')) as unknown[];
    const isInstant = typeof value === 'string' && /^\d{4}-\d\d-\d\dT[\d:.]+Z$/.test(value);
    if ((value === null || (isInstant && !Number.isNaN(Date.parse(value)))) && isUuid(String(id)))
      return { value: value as string | null, id: String(id), back: back === 1 };
  } catch {
    // Refused below.
  }
  throw errors.notFound('Invalid cursor');
}

export interface PageReader<Row> {
  request: FastifyRequest;
  publicUrl: string;
  cursor: string | undefined;
  ascending: boolean;
  /** Parameters that replace the client's in links, for example a bound that would move otherwise, such as `-7d`. */
  pinned?: Record<string, string>;
  /** Reads a page. `next`: where the one after it begins, also if this one has no rows. Undefined: there is none. */
  read(from: {
    position: Position | undefined;
    ascending: boolean;
  }): Promise<{ rows: Row[]; next: Position | undefined }>;
  positionOf(row: Row): Position;
}

function link(
  { request, publicUrl, pinned = {} }: PageReader<never> | PageReader<unknown>,
  cursor: Cursor,
): string {
  const { pathname, searchParams } = new URL(request.originalUrl, publicUrl);
  searchParams.delete('personal_api_key');
  for (const [name, value] of Object.entries(pinned)) searchParams.set(name, value);
  searchParams.set('cursor', write(cursor));
  return `${publicUrl}${pathname}?${searchParams}`;
}

/** Reads the page at a cursor, and links to the next and the previous one. */
export async function readCursorPage<Row>(
  reader: PageReader<Row>,
): Promise<{ next: string | null; previous: string | null; rows: Row[] }> {
  const { cursor: text, ascending, positionOf } = reader;
  const cursor = text === undefined ? undefined : read(text);
  const back = cursor?.back ?? false;
  const page = await reader.read({ position: cursor, ascending: back ? !ascending : ascending });
  const rows = back ? page.rows.toReversed() : page.rows;
  // Where the page began: a page without rows lies before the next one.
  const near = page.rows[0] ? positionOf(page.rows[0]) : page.next;
  const plain = reader as PageReader<unknown>;
  const onward = page.next && link(plain, { ...page.next, back });
  const backward = cursor && near && link(plain, { ...near, back: !back });
  const [next, previous] = back ? [backward, onward] : [onward, backward];
  return { rows, next: next ?? null, previous: previous ?? null };
}
