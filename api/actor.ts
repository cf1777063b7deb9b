import type { FastifyRequest } from 'fastify';
import type { UserActor } from '../tenancy/actor.ts';
import { boundsOf } from './access.ts';

/** Names who sends a request, for commands and the activity log. */
export function actorOf({ caller, ip, id }: FastifyRequest): UserActor {
  return {
    kind: 'user',
    userId: caller.user.id,
    keyId: caller.key.id,
    address: ip,
    requestId: id,
    sees: boundsOf(caller.key),
  };
}
