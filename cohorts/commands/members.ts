import { changeTransaction } from '../../db/change-turns.ts';
import type { Pool, Transaction } from '../../db/pool.ts';
import { refuse } from '../../refusals.ts';
import type { Actor } from '../../tenancy/actor.ts';
import { audit } from '../../tenancy/audit.ts';
import type { CohortRow } from '../rows/cohorts.ts';
import { noteMembersChanged } from '../rows/counting.ts';
import { addMembers, hasPerson, type NamedPersons, removeMember } from '../rows/members.ts';

type Cohort = Pick<CohortRow, 'project_id' | 'id' | 'name'>;

const auditMembers = (client: Transaction, actor: Actor, cohort: Cohort, detail: Record<string, unknown>) =>
  audit(client, actor, {
    ...{ scope: 'Cohort', itemId: String(cohort.id), projectId: cohort.project_id, activity: 'updated' },
    detail: { name: cohort.name, ...detail },
  });

/** Adds persons to a static cohort. Answers the names that belong to nobody. If all do, it is refused. */
export function addPersons(
  { pool }: { pool: Pool },
  actor: Actor,
  cohort: Cohort,
  named: NamedPersons,
): Promise<string[]> {
  const names = new Set([...named.personIds, ...named.distinctIds]).size;
  return changeTransaction(pool, cohort.project_id, async (client) => {
    const unknown = await addMembers(client, cohort.project_id, cohort.id, named);
    if (new Set(unknown).size === names) {
      throw refuse.invalid('person_ids', 'No valid users to add to cohort');
    }
    await noteMembersChanged(client, cohort.project_id);
    await auditMembers(client, actor, cohort, { persons_named: names, persons_unknown: unknown.length });
    return unknown;
  });
}

/** Takes a person out of a static cohort. */
export function removePerson(
  { pool }: { pool: Pool },
  actor: Actor,
  cohort: Cohort,
  personId: string,
): Promise<void> {
  return changeTransaction(pool, cohort.project_id, async (client) => {
    if (!(await removeMember(client, cohort.project_id, cohort.id, personId))) {
      throw refuse.absent(
        (await hasPerson(client, cohort.project_id, personId))
          ? 'Person is not part of the cohort'
          : "Person with this UUID does not exist in the cohort's team",
      );
    }
    await noteMembersChanged(client, cohort.project_id);
    await auditMembers(client, actor, cohort, { person_removed: personId });
  });
}
