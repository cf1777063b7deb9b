import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Asker } from '../db/turns.ts';
import { ApiError } from './errors.ts';

/** Nobody receives this answer. It ends the work of a request whose client is gone. */
export const gone = () =>
  new ApiError(499, {
    type: 'invalid_request',
    code: 'client_gone',
    detail: 'The client closed the connection before the answer.',
    attr: null,
  });

/** Returns a signal that is aborted when the client goes away before it has its answer. */
export function clientSignal({ raw }: FastifyReply): AbortSignal {
  const controller = new AbortController();
  if (raw.destroyed) controller.abort(gone());
  raw.once('close', () => {
    if (!raw.writableFinished) controller.abort(gone());
  });
  return controller.signal;
}

/** Says for whom expensive work is done: for the project of the path, as long as the client waits. */
export const askerOf = ({ project }: FastifyRequest, reply: FastifyReply): Asker => ({
  projectId: project.id,
  signal: clientSignal(reply),
});
