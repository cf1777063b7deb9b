import type { Queryable } from '../../db/pool.ts';
import type { Actor } from '../../tenancy/actor.ts';
import { type Activity, audit, changes } from '../../tenancy/audit.ts';
import { shownDraft, shownSource } from '../reads/drafts.ts';
import { shownContent } from '../reads/shown-function.ts';
import { type DraftRow, findDraft } from '../rows/drafts.ts';
import { type FunctionKey, type FunctionRow, keyOf } from '../rows/functions.ts';
import { sourceOf } from '../rules/source.ts';

/** Writes down who did what to a function. Call it in the transaction of the change. */
export const auditFunction = (
  queryable: Queryable,
  actor: Actor,
  { projectId, functionId }: FunctionKey,
  activity: Activity['activity'],
  detail: Record<string, unknown>,
): Promise<void> =>
  audit(queryable, actor, { scope: 'HogFunction', itemId: functionId, projectId, activity, detail });

/** Who did something, in a sentence. */
export const WHO: Readonly<Record<Actor['kind'], string>> = {
  user: 'a user',
  operator: 'the operator',
  system: 'Sluice',
};

/** What of a function the activity log compares. */
function audited(row: FunctionRow): Record<string, unknown> {
  const {
    name,
    description,
    enabled,
    icon_url,
    execution_order: priority,
    on_error,
    deleted_at,
    delivery,
    paused,
  } = row;
  return {
    name,
    description,
    enabled,
    icon_url,
    priority,
    on_error,
    delivery,
    paused,
    deleted: deleted_at !== null,
    ...shownContent(row),
  };
}

/** Lists what a change did. A replaced secret is named, and its value is not shown. */
export const functionChanges = (before: FunctionRow, after: FunctionRow, secretsReplaced: boolean) => ({
  name: after.name,
  changes: withoutValues(changes(audited(before), audited(after)).changes, secretsReplaced),
});

const MASK = 'masked';
/** An address is often a credential, also where nobody marked it as secret. Revisions show these fields. */
const VALUES: ReadonlySet<string> = new Set(['inputs', 'mappings']);

/** Names the fields with values of inputs, and does not show them: more people read the activity log than functions. */
function withoutValues(found: ReturnType<typeof changes>['changes'], secretsReplaced: boolean) {
  const shown = found.map((one) => (VALUES.has(one.field) ? { ...one, before: MASK, after: MASK } : one));
  return secretsReplaced ? [...shown, { field: 'encrypted_inputs', before: MASK, after: MASK }] : shown;
}

/**
 * Writes down what became of a draft, compared with the draft before it, or else with what runs. Call it after the draft
 * was stored, in the same transaction.
 */
export async function auditDraft(
  queryable: Queryable,
  actor: Actor,
  activity: 'draft_updated' | 'revision_restored',
  { row, draft }: { row: FunctionRow; draft: DraftRow | undefined },
  { secretsReplaced, ...more }: { secretsReplaced: boolean; version?: number },
): Promise<void> {
  const key = keyOf(row);
  const stored = (await findDraft(queryable, key)) as DraftRow;
  const before = draft ? shownDraft(row, draft) : shownSource(sourceOf(row), row.secret_keys);
  const { changes: found } = changes(before, shownDraft(row, stored));
  await auditFunction(queryable, actor, key, activity, {
    ...{ name: row.name, ...more },
    changes: withoutValues(found, secretsReplaced),
  });
}
