import type { FastifyRequest } from 'fastify';
import { z } from 'zod';

const DEFAULT_LIMIT = 100;
const MAX_LIMIT = 1000;
/** More rows than any table has. Keeps the sum of limit and offset exact. */
const MAX_OFFSET = 1_000_000_000;

export interface PageRequest {
  limit: number;
  offset: number;
}

/** The query parameters of every list. An invalid value is no error: the default takes its place. */
export const pageQuery = z.object({
  limit: z
    .unknown()
    .optional()
    .meta({
      type: 'integer',
      description: `Results per page: ${DEFAULT_LIMIT} by default, at most ${MAX_LIMIT}.`,
    }),
  offset: z
    .unknown()
    .optional()
    .meta({ type: 'integer', description: 'Index of the first result, 0 by default.' }),
});

/** The schema of one page of a list. */
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

/** Reads the limit and the offset of a request. */
export function pageOf(query: unknown, defaultLimit = DEFAULT_LIMIT): PageRequest {
  const { limit, offset } = (query ?? {}) as Record<string, unknown>;
  return {
    limit: Math.min(integer(limit) || defaultLimit, MAX_LIMIT),
    offset: Math.min(integer(offset) ?? 0, MAX_OFFSET),
  };
}

/** The query parameters of a list that is also read by the numbers of its pages. */
export const numberedPageQuery = pageQuery.extend({
  page: z
    .unknown()
    .optional()
    .meta({ type: 'integer', description: 'Another way to say `offset`: from 1 on.' }),
});

/** Reads the limit and the offset of a request, which may name the number of a page instead. */
export function numberedPageOf(query: unknown, defaultLimit = DEFAULT_LIMIT): PageRequest {
  const asked = pageOf(query, defaultLimit);
  const number = integer((query as { page?: unknown } | undefined)?.page);
  return number ? { ...asked, offset: Math.min((number - 1) * asked.limit, MAX_OFFSET) } : asked;
}

/** Query parameters that a link does not copy from the request. */
const UNLINKED = new Set(['personal_api_key', 'limit', 'offset', 'page']);

/** The path of a request, and its query parameters that links copy. A request line may contain a whole URL. */
function linked(
  request: FastifyRequest,
  publicUrl: string,
): { path: string; parameters: [string, string][] } {
  const { pathname, searchParams } = new URL(request.originalUrl, publicUrl);
  const parameters = [...searchParams].filter(([name]) => !UNLINKED.has(name));
  return { path: `${publicUrl}${pathname}`, parameters };
}

function link(request: FastifyRequest, publicUrl: string, limit: number, offset: number | undefined): string {
  const { path, parameters } = linked(request, publicUrl);
  parameters.push(['limit', String(limit)]);
  if (offset !== undefined) parameters.push(['offset', String(offset)]);
  parameters.sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0));
  return `${path}?${new URLSearchParams(parameters)}`;
}

/** Where a page ends, and the next one begins. A page of large results ends early. */
const endOf = ({ limit, offset }: PageRequest, shown: number): number =>
  offset + (shown > 0 ? Math.min(shown, limit) : limit);

/** Builds the links of a page of which is only known whether there are more results behind it. */
export function pageLinks(
  request: FastifyRequest,
  publicUrl: string,
  { limit, offset }: PageRequest,
  { shown, hasMore }: { shown: number; hasMore: boolean },
): { next: string | null; previous: string | null } {
  const before = offset - limit;
  return {
    next: hasMore ? link(request, publicUrl, limit, endOf({ limit, offset }, shown)) : null,
    previous: offset > 0 ? link(request, publicUrl, limit, before > 0 ? before : undefined) : null,
  };
}

/** Builds the answer of a list: the number of all results, and absolute links to the next and the previous page. */
export function paginated<T>(
  request: FastifyRequest,
  publicUrl: string,
  { limit, offset }: PageRequest,
  count: number,
  results: T[],
): { count: number; next: string | null; previous: string | null; results: T[] } {
  const shown = results.length;
  const hasMore = endOf({ limit, offset }, shown) < count;
  return {
    count,
    ...pageLinks(request, publicUrl, { limit, offset }, { shown, hasMore }),
    results,
  };
}

/** As `paginated`, for a list that clients read by the numbers of its pages: the links name these. */
export function numbered<T>(
  request: FastifyRequest,
  publicUrl: string,
  wanted: PageRequest,
  count: number,
  results: T[],
): ReturnType<typeof paginated<T>> {
  const { limit, offset } = wanted;
  // A list that does not begin with a whole page has no such numbers.
  if (offset % limit !== 0) return paginated(request, publicUrl, wanted, count, results);
  const { path, parameters } = linked(request, publicUrl);
  const to = (number: number) =>
    `${path}?${new URLSearchParams([...parameters, ['page', String(number)], ['limit', String(limit)]])}`;
  const own = offset / limit + 1;
  return {
    count,
    next: offset + limit < count ? to(own + 1) : null,
    previous: own > 1 ? to(own - 1) : null,
    results,
  };
}
