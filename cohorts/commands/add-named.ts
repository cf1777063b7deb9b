import { inChangeTurn } from '../../db/change-turns.ts';
import type { Pool } from '../../db/pool.ts';
import type { Actor } from '../../tenancy/actor.ts';
import { audit } from '../../tenancy/audit.ts';
import { isUuid } from '../../values/uuid.ts';
import type { CohortRow } from '../rows/cohorts.ts';
import { noteMembersChanged } from '../rows/counting.ts';
import { addMembers } from '../rows/members.ts';
import type { Upload } from '../rules/upload.ts';

/** How many persons one statement looks for. */
const AT_ONCE = 5_000;
const SHOWN = 10;

/** What became of a list of persons. */
export interface Added {
  /** How many names the list has. */
  named: number;
  /** How many of them belong to no person. */
  unknown: number;
  examples: string[];
}

/** Adds the persons that a list names to a static cohort. Adding them again changes nothing. */
export async function addNamed(
  { pool }: { pool: Pool },
  actor: Actor,
  cohort: Pick<CohortRow, 'project_id' | 'id' | 'name'>,
  { by, names }: Upload,
  signal?: AbortSignal,
): Promise<Added> {
  const all = [...names];
  const unknown: string[] = [];
  for (let at = 0; at < all.length; at += AT_ONCE) {
    signal?.throwIfAborted();
    const some = all.slice(at, at + AT_ONCE);
    const wrong = by === 'person_id' ? some.filter((name) => !isUuid(name)) : [];
    unknown.push(...wrong);
    const ids = {
      personIds: by === 'person_id' ? some.filter(isUuid) : [],
      distinctIds: by === 'distinct_id' ? some : [],
      emails: by === 'email' ? some : [],
    };
    const missing = await inChangeTurn(pool, cohort.project_id, () =>
      addMembers(pool, cohort.project_id, cohort.id, ids),
    );
    unknown.push(...missing);
  }
  await noteMembersChanged(pool, cohort.project_id);
  const added = { named: all.length, unknown: unknown.length, examples: unknown.slice(0, SHOWN) };
  await audit(pool, actor, {
    scope: 'Cohort',
    itemId: String(cohort.id),
    projectId: cohort.project_id,
    activity: 'updated',
    detail: { name: cohort.name, persons_named: added.named, persons_unknown: added.unknown },
  });
  return added;
}
