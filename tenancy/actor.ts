import type { Queryable } from '../db/pool.ts';
import { findMemberProject } from '../db/projects.ts';

/** What a user's key may see. An empty list sets no bound. */
export interface Sight {
  projects: readonly number[];
  organizations: readonly string[];
}

/** Somebody who acts through the API with a personal API key. */
export interface UserActor {
  kind: 'user';
  userId: number;
  keyId: string;
  /** The address of the client, as the network reports it. */
  address: string;
  requestId: string;
  sees: Sight;
}

/** Who runs a command: a user, the operator at the command line, or Sluice itself. The activity log names the actor. */
export type Actor = UserActor | { kind: 'operator' } | { kind: 'system' };

/** The person who operates the installation. The operator may see everything. */
export const OPERATOR: Actor = { kind: 'operator' };
/** Sluice itself, for example when it pauses an export whose runs fail. It may see everything. */
export const SYSTEM: Actor = { kind: 'system' };

/** Names the request of a user in the log of the process, under the name that the log of requests uses. */
export const requestOf = (actor: Actor): { reqId?: string } =>
  actor.kind === 'user' ? { reqId: actor.requestId } : {};

/** Answers whether the actor may know what is in a project. */
export async function maySeeProject(queryable: Queryable, actor: Actor, projectId: number): Promise<boolean> {
  if (actor.kind !== 'user') return true;
  const { projects, organizations } = actor.sees;
  if (projects.length > 0 && !projects.includes(projectId)) return false;
  const project = await findMemberProject(queryable, actor.userId, projectId);
  return (
    project !== undefined && (organizations.length === 0 || organizations.includes(project.organization_id))
  );
}
