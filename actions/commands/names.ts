import type { Transaction } from '../../db/pool.ts';
import { refuse } from '../../refusals.ts';
import { hasActions, lockNamesake } from '../rows/actions.ts';
import { ACTION_LIMITS } from '../rules/limits.ts';

/** Refuses a name that another action of the project has. Many may have no name. */
export async function requireFreeName(
  client: Transaction,
  projectId: number,
  name: string | null,
  ownId: number | null,
): Promise<void> {
  if (name === null || name === '') return;
  const other = await lockNamesake(client, projectId, name, ownId);
  if (other === undefined) return;
  throw refuse.invalid('name', `This project already has an action with this name, ID ${other}`, {
    code: 'unique',
  });
}

/** Refuses one action more than a project may have. */
export async function requireRoom(client: Transaction, projectId: number): Promise<void> {
  const { actions } = ACTION_LIMITS;
  if (!(await hasActions(client, projectId, actions))) return;
  throw refuse.invalid(
    null,
    `This project already has ${actions} actions, the most that it may have. Delete one before you create another.`,
  );
}
