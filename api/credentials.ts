import type { FastifyRequest } from 'fastify';

/** A key that a request contains. It may be invalid. */
export interface Candidate {
  token: string;
  place: 'request Authorization header' | 'request body' | 'request query string';
}

export function fromHeader(request: FastifyRequest): Candidate | undefined {
  const match = /^Bearer\s+(\S+)\s*$/.exec(request.headers.authorization ?? '');
  return match ? { token: match[1] as string, place: 'request Authorization header' } : undefined;
}

function fromField(container: unknown, place: Candidate['place']): Candidate | undefined {
  const value = (container as Record<string, unknown> | null | undefined)?.personal_api_key;
  return typeof value === 'string' && value !== '' ? { token: value, place } : undefined;
}

export const fromQuery = (request: FastifyRequest): Candidate | undefined =>
  fromField(request.query, 'request query string');

/** Finds the key of a request: in the header, else in the body if that is parsed already, else in the query. */
export function findCandidate(request: FastifyRequest): Candidate | undefined {
  return fromHeader(request) ?? fromField(request.body, 'request body') ?? fromQuery(request);
}

/** Removes the key from a body, because it is not a field of the resource. */
export function withoutKey(body: unknown): unknown {
  if (typeof body !== 'object' || body === null || !('personal_api_key' in body)) return body;
  const { personal_api_key: _key, ...rest } = body;
  return rest;
}
