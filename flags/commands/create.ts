import { changeTransaction } from '../../db/change-turns.ts';
import type { Transaction } from '../../db/pool.ts';
import { lockProject } from '../../db/projects.ts';
import { refuse } from '../../refusals.ts';
import type { Actor } from '../../tenancy/actor.ts';
import { sealPayloads } from '../reads/payloads.ts';
import {
  type FlagRow,
  insertFlag,
  isKeyTaken,
  listLinks,
  lockFlags,
  putSealedPayloads,
  sizeOfFlags,
} from '../rows/flags.ts';
import { auditFlag } from './audit.ts';
import { checkAsks, checkCohorts, checkRoom } from './check.ts';
import type { FlagChangeDependencies, FlagCommandDependencies, FlagInput } from './dependencies.ts';
import { type PreparedFlag, prepareFlag } from './prepare.ts';

export const taken = () =>
  refuse.invalid('key', 'There is already a feature flag with this key.', { code: 'unique' });

/** Creates a flag. Its filters are read before the transaction. */
export async function createFlag(
  deps: FlagCommandDependencies,
  actor: Actor,
  projectId: number,
  input: FlagInput,
): Promise<FlagRow> {
  const prepared = prepareFlag(deps, undefined, input);
  return changeTransaction(deps.pool, projectId, (client) => store(client, deps, actor, projectId, prepared));
}

/** Creates a flag as a part of a transaction. */
export const createFlagIn = async (
  client: Transaction,
  deps: FlagChangeDependencies,
  actor: Actor,
  projectId: number,
  input: FlagInput,
): Promise<FlagRow> => store(client, deps, actor, projectId, prepareFlag(deps, undefined, input));

async function store(
  client: Transaction,
  deps: FlagChangeDependencies,
  actor: Actor,
  projectId: number,
  { fields, asks, cohorts, secrets }: PreparedFlag,
): Promise<FlagRow> {
  if (fields.archived && fields.active) throw archivedIsActive();
  if (!(await lockProject(client, projectId))) throw refuse.absent('Project not found.');
  await lockFlags(client, projectId);
  if (!fields.deleted) {
    if (await isKeyTaken(client, projectId, fields.key, null)) throw taken();
    checkRoom(deps, await sizeOfFlags(client, projectId, null), fields.filters);
  }
  await checkCohorts(deps, client, projectId, cohorts);
  if (asks.length > 0) {
    const own = { id: 0, key: fields.key, active: fields.active, asks };
    checkAsks(own, await listLinks(client, projectId));
  }
  const row = await insertFlag(client, {
    ...fields,
    project_id: projectId,
    created_by: actor.kind === 'user' ? actor.userId : null,
  });
  if (secrets) {
    const key = { projectId, flagId: row.id };
    await putSealedPayloads(client, key, sealPayloads(deps.keyring, row.id, secrets));
  }
  await auditFlag(client, actor, row, 'created', { name: row.key });
  return row;
}

export const archivedIsActive = () =>
  refuse.invalid(
    'archived',
    'Cannot archive an enabled feature flag. Disable it first, or send active: false in the same request.',
  );
