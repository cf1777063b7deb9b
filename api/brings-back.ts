import type { FastifyRequest } from 'fastify';

/** Whether a request brings back what was deleted: only such a request finds it. */
export function bringsBack({ method, body }: FastifyRequest): boolean {
  return method === 'PATCH' && (body as { deleted?: unknown } | null | undefined)?.deleted === false;
}
