import { Refusal } from '../../refusals.ts';
import type { Actor } from '../../tenancy/actor.ts';
import { parseExactJson } from '../../values/exact-json.ts';
import { isObject } from '../../values/json-object.ts';
import type { FlagRow } from '../rows/flags.ts';
import { plannedChanges } from '../rows/scheduled-changes.ts';
import type { ChangePayload } from '../rules/scheduled-changes.ts';
import { checkFilters } from '../validation/filters.ts';
import { type CopyDependencies, translated, translationOf } from './copy.ts';
import { scheduleChange } from './scheduled-changes.ts';
import type { PlanCommandDependencies } from './tell.ts';

/** A change for another project: what it names there. */
async function forProject(
  deps: CopyDependencies,
  actor: Actor,
  way: { from: number; to: number },
  payload: ChangePayload,
): Promise<ChangePayload> {
  if (payload.operation !== 'add_release_condition' || !isObject(payload.value)) return payload;
  const { groups } = payload.value;
  const { asks, cohorts, filters } = checkFilters({ groups }, { isNew: false, isRemoteConfiguration: false });
  const asked = { filters, flags: asks, cohorts };
  const there = translated(filters, await translationOf(deps, actor, way, asked));
  return { ...payload, value: { ...payload.value, groups: there.groups } };
}

/**
 * Plans for a copy of a flag what is planned for the flag and still to come. What the copy has planned already is not planned
 * again. Answers why some of it could not be planned.
 */
export async function copySchedule(
  deps: CopyDependencies & PlanCommandDependencies,
  actor: Actor,
  source: FlagRow,
  copy: FlagRow,
  signal?: AbortSignal,
): Promise<string | undefined> {
  const way = { from: source.project_id, to: copy.project_id };
  const to = { projectId: copy.project_id, flagId: copy.id };
  const planned = await plannedChanges(deps.pool, { projectId: way.from, flagId: source.id });
  const known = new Set(
    (await plannedChanges(deps.pool, to)).map((row) => JSON.stringify([row.scheduled_at, row.payload])),
  );
  const reasons = new Set<string>();
  for (const row of planned) {
    signal?.throwIfAborted();
    try {
      const payload = await forProject(deps, actor, way, parseExactJson(row.payload) as ChangePayload);
      if (known.has(JSON.stringify([row.scheduled_at, JSON.stringify(payload)]))) continue;
      await scheduleChange(deps, actor, to, { payload, scheduledAt: row.scheduled_at });
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      reasons.add(error.message);
    }
  }
  return reasons.size > 0 ? `Flag copied but schedules failed: ${[...reasons].join(' ')}` : undefined;
}
