import type { FastifyRequest } from 'fastify';
import { z } from 'zod';

const DEFAULT_LIMIT = 100;
const MAX_LIMIT = 1000;
/** Beyond any table; keeps the sum of limit and offset exact. */
const MAX_OFFSET = 1_000_000_000;

export interface PageRequest {
  limit: number;
  offset: number;
}

/** Documented query of every list. Values that make no sense fall back to the defaults, they are no error. */
export const pageQuery = z.object({
  limit: z
    .unknown()
    .optional()
    .meta({
      type: 'integer',
      description: `Results per page, at most ${MAX_LIMIT}; default ${DEFAULT_LIMIT}.`,
    }),
  offset: z
    .unknown()
    .optional()
    .meta({ type: 'integer', description: 'Index of the first result; default 0.' }),
});

/** The same where parameters that nobody knows are refused: a filter that is misspelt must not find everything. */
export const strictPageQuery = pageQuery.extend({ personal_api_key: z.string().optional() }).strict();

export const page = <T extends z.ZodType>(item: T) =>
  z.object({
    count: z.int(),
    next: z.string().nullable(),
    previous: z.string().nullable(),
    results: z.array(item),
  });

function integer(text: unknown): number | undefined {
  return typeof text === 'string' && /^\d{1,15}$/.test(text) ? Number(text) : undefined;
}

export function pageOf(query: unknown): PageRequest {
  const { limit, offset } = (query ?? {}) as Record<string, unknown>;
  return {
    limit: Math.min(integer(limit) || DEFAULT_LIMIT, MAX_LIMIT),
    offset: Math.min(integer(offset) ?? 0, MAX_OFFSET),
  };
}

/** Query parameters that must not turn up in links. */
const UNLINKED = new Set(['personal_api_key', 'limit', 'offset']);

function link(request: FastifyRequest, publicUrl: string, limit: number, offset: number | undefined): string {
  // A request line may name the whole address; only its path is the client's to choose.
  const { pathname, searchParams } = new URL(request.originalUrl, publicUrl);
  const parameters = [...searchParams].filter(([name]) => !UNLINKED.has(name));
  parameters.push(['limit', String(limit)]);
  if (offset !== undefined) parameters.push(['offset', String(offset)]);
  parameters.sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0));
  return `${publicUrl}${pathname}?${new URLSearchParams(parameters)}`;
}

/** The answer of a list: counts all, links absolutely to the neighbours. */
export function paginated<T>(
  request: FastifyRequest,
  publicUrl: string,
  { limit, offset }: PageRequest,
  count: number,
  results: T[],
): { count: number; next: string | null; previous: string | null; results: T[] } {
  const before = offset - limit;
  return {
    count,
    next: offset + limit < count ? link(request, publicUrl, limit, offset + limit) : null,
    previous: offset > 0 ? link(request, publicUrl, limit, before > 0 ? before : undefined) : null,
    results,
  };
}
