import type { FastifyRequest } from 'fastify';

/** A key as it was found in a request, not yet looked up. */
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

/** A key in the body can only be read once the body is; everywhere else, nothing is parsed for a stranger. */
export function findCandidate(request: FastifyRequest): Candidate | undefined {
  return (
    fromHeader(request) ??
    fromField(request.body, 'request body') ??
    fromField(request.query, 'request query string')
  );
}

/** The key in a body is no field of the thing that the body describes. */
export function withoutKey(body: unknown): unknown {
  if (typeof body !== 'object' || body === null || !('personal_api_key' in body)) return body;
  const { personal_api_key: _key, ...rest } = body;
  return rest;
}
