import { changeTransaction } from '../../db/change-turns.ts';
import { type Transaction, transaction } from '../../db/pool.ts';
import { refuse } from '../../refusals.ts';
import type { Actor } from '../../tenancy/actor.ts';
import { parseExactJson } from '../../values/exact-json.ts';
import { plannerOf } from '../plan-actor.ts';
import { type FlagRow, findFlag, lockFlags } from '../rows/flags.ts';
import {
  deleteScheduledChange,
  findScheduledChange,
  insertScheduledChange,
  type ScheduledChangeRow,
  sizeOfPlannedChanges,
  updateScheduledChange,
} from '../rows/scheduled-changes.ts';
import { FLAG_LIMITS } from '../rules/limits.ts';
import { type ChangePayload, changeOfPayload, EXPECTED } from '../rules/scheduled-changes.ts';
import { checkFilters } from '../validation/filters.ts';
import { auditFlag } from './audit.ts';
import { checkCohorts } from './check.ts';
import { type PlanCommandDependencies, tellOfPlan } from './tell.ts';

export interface ScheduledChangeInput {
  payload: ChangePayload;
  scheduledAt: string;
}

/** Refuses what could not be done to the flag as it is now. It is checked again when the time has come. */
async function checkPayload(
  deps: PlanCommandDependencies,
  client: Transaction,
  flag: FlagRow,
  payload: ChangePayload,
): Promise<void> {
  const filters = parseExactJson(flag.filters) as Record<string, unknown>;
  const change = changeOfPayload(payload, filters);
  if (!change) {
    throw refuse.invalid(
      'payload',
      `The value of ${payload.operation} must be ${EXPECTED[payload.operation]}.`,
    );
  }
  if (!('filters' in change)) return;
  const isRemoteConfiguration = flag.is_remote_configuration;
  const checked = checkFilters({ ...filters, ...change.filters }, { isNew: false, isRemoteConfiguration });
  await checkCohorts(deps, client, flag.project_id, checked.cohorts);
}

/** Refuses what would be more than a project may plan. One change is replaced. Call it under the lock. */
async function checkRoom(
  client: Transaction,
  projectId: number,
  replaced: number | null,
  payload: string,
): Promise<void> {
  const { plannedChanges: most, plannedBytes } = FLAG_LIMITS;
  const others = await sizeOfPlannedChanges(client, projectId, replaced);
  if (others.changes + 1 > most) {
    const message = `A project may have ${most} changes that are still to come.`;
    throw refuse.invalid(null, message, { code: 'limit' });
  }
  const bytes = others.bytes + Buffer.byteLength(payload);
  if (bytes > plannedBytes) {
    const message = `The changes of the project that are still to come would have ${bytes} bytes; ${plannedBytes} are allowed.`;
    throw refuse.invalid('payload', message, { code: 'limit' });
  }
}

const logged = ({ id, payload, scheduled_at }: ScheduledChangeRow) => ({
  ...{ id, scheduled_at },
  payload: JSON.parse(payload) as unknown,
});

const planOf = (row: ScheduledChangeRow) => ({
  kind: 'change' as const,
  ...{ projectId: row.project_id, planId: String(row.id), flagId: row.flag_id },
});

/** Plans a change of a flag. It is carried out in the name of the actor, and at once if its time is past. */
export async function scheduleChange(
  deps: PlanCommandDependencies,
  actor: Actor,
  { projectId, flagId }: { projectId: number; flagId: number | undefined },
  { payload, scheduledAt }: ScheduledChangeInput,
): Promise<ScheduledChangeRow> {
  const made = await changeTransaction(deps.pool, projectId, async (client) => {
    await lockFlags(client, projectId);
    const flag = flagId === undefined ? undefined : await findFlag(client, { projectId, flagId });
    if (!flag || flag.deleted) throw refuse.invalid('record_id', 'Feature flag not found');
    const text = JSON.stringify(payload);
    await checkRoom(client, projectId, null, text);
    await checkPayload(deps, client, flag, payload);
    const row = await insertScheduledChange(client, {
      ...{ project_id: projectId, flag_id: flag.id, payload: text },
      ...{ scheduled_at: scheduledAt, ...plannerOf(actor) },
    });
    await auditFlag(client, actor, flag, 'updated', { name: flag.key, scheduled_change: logged(row) });
    return row;
  });
  await tellOfPlan(deps, actor, planOf(made));
  return made;
}

/** Changes what a scheduled change does, or when. It must still be to come. */
export async function rescheduleChange(
  deps: PlanCommandDependencies,
  actor: Actor,
  row: ScheduledChangeRow,
  { payload, scheduledAt }: Partial<ScheduledChangeInput>,
): Promise<ScheduledChangeRow> {
  const { project_id: projectId, id: changeId, flag_id: flagId } = row;
  const changed = await changeTransaction(deps.pool, projectId, async (client) => {
    await lockFlags(client, projectId);
    const flag = await findFlag(client, { projectId, flagId });
    if (!flag || flag.deleted) throw refuse.invalid('record_id', 'The flag was deleted.');
    const text = payload && JSON.stringify(payload);
    if (payload) await checkPayload(deps, client, flag, payload);
    if (text) await checkRoom(client, projectId, changeId, text);
    const done = await updateScheduledChange(
      client,
      { projectId, changeId },
      { payload: text, scheduled_at: scheduledAt },
    );
    if (!done) throw refuse.invalid(null, 'The change has already executed. Schedule a new one.');
    await auditFlag(client, actor, flag, 'updated', { name: flag.key, scheduled_change: logged(done) });
    return done;
  });
  await tellOfPlan(deps, actor, planOf(changed));
  return changed;
}

/** Deletes a scheduled change. What is still to come does not happen. */
export async function unscheduleChange(
  deps: PlanCommandDependencies,
  actor: Actor,
  key: { projectId: number; changeId: number },
): Promise<void> {
  const row = await transaction(deps.pool, async (client) => {
    const found = await findScheduledChange(client, key);
    if (!found || !(await deleteScheduledChange(client, key))) throw refuse.absent();
    const flag = { project_id: key.projectId, id: found.flag_id };
    await auditFlag(client, actor, flag, 'updated', { removed_scheduled_change: logged(found) });
    return found;
  });
  if (row.executed_at === null) await tellOfPlan(deps, actor, planOf(row));
}
