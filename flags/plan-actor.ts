import { type Actor, SYSTEM } from '../tenancy/actor.ts';

/** Who planned something. */
export interface Planner {
  created_by: number | null;
  key_id: string | null;
}

/** Remembers in whose name a plan is carried out. */
export const plannerOf = (actor: Actor): Planner =>
  actor.kind === 'user'
    ? { created_by: actor.userId, key_id: actor.keyId }
    : { created_by: null, key_id: null };

/** Acts for who planned something. It was allowed when it was planned, so nothing is asked again. */
export const actorFor = ({ created_by: userId, key_id: keyId }: Planner): Actor =>
  userId === null || keyId === null
    ? SYSTEM
    : {
        ...{ kind: 'user', userId, keyId, address: '', requestId: '' },
        sees: { projects: [], organizations: [] },
      };
