import { type Pool, type Transaction, transaction } from '../../db/pool.ts';
import { lockProject } from '../../db/projects.ts';
import { refuse } from '../../refusals.ts';
import type { Actor } from '../../tenancy/actor.ts';
import { audit, changes } from '../../tenancy/audit.ts';
import {
  type AnnotationFields,
  type AnnotationKey,
  type AnnotationRow,
  countAnnotations,
  findAnnotation,
  insertAnnotation,
  updateAnnotation,
} from '../rows/annotations.ts';
import { ANNOTATION_LIMITS } from '../rules/annotations.ts';

export interface AnnotationDependencies {
  pool: Pool;
}

const DEFAULTS: AnnotationFields = {
  ...{ content: null, date_marker: null, scope: 'dashboard_item', creation_type: 'USR' },
  ...{
    dashboard_item: null,
    dashboard_id: null,
    emoji: null,
    hidden_in_user_interface: null,
    deleted: false,
  },
};

/** What a user sets. Fields that are left out keep their values, or get their defaults. */
export type AnnotationInput = { [Field in keyof AnnotationFields]?: AnnotationFields[Field] | undefined };

const given = (input: AnnotationInput) =>
  Object.fromEntries(
    Object.entries(input).filter(([, value]) => value !== undefined),
  ) as Partial<AnnotationFields>;

/** Refuses one more annotation, or one more that the whole organization sees, if the project has as many as it may have. */
async function expectRoom(
  client: Transaction,
  projectId: number,
  isShared: boolean,
  isNew = true,
): Promise<void> {
  if (!(await lockProject(client, projectId))) throw refuse.absent('Project not found.');
  const { all, shared } = await countAnnotations(client, projectId);
  if (isNew && all >= ANNOTATION_LIMITS.perProject) {
    throw refuse.invalid(
      null,
      `This project already has ${ANNOTATION_LIMITS.perProject} annotations, the most that it may have. Deleted ones count.`,
    );
  }
  if (isShared && shared >= ANNOTATION_LIMITS.shared) {
    throw refuse.invalid(
      'scope',
      `This project already has ${ANNOTATION_LIMITS.shared} annotations about the organization, the most that it may have. Deleted ones count.`,
    );
  }
}

export async function createAnnotation(
  { pool }: AnnotationDependencies,
  actor: Actor,
  projectId: number,
  input: AnnotationInput,
): Promise<AnnotationRow> {
  return transaction(pool, async (client) => {
    await expectRoom(client, projectId, input.scope === 'organization');
    const row = await insertAnnotation(client, {
      ...DEFAULTS,
      ...given(input),
      project_id: projectId,
      created_by: actor.kind === 'user' ? actor.userId : null,
    });
    await audit(client, actor, {
      ...{ scope: 'Annotation', itemId: String(row.id), projectId, activity: 'created' },
      detail: { content: row.content, scope: row.scope, date_marker: row.date_marker },
    });
    return row;
  });
}

/** Changes an annotation of the project. `deleted` hides it, and brings it back. */
export async function changeAnnotation(
  { pool }: AnnotationDependencies,
  actor: Actor,
  key: AnnotationKey,
  input: AnnotationInput,
): Promise<AnnotationRow> {
  return transaction(pool, async (client) => {
    const before = await findAnnotation(client, key);
    if (!before) throw refuse.absent();
    if (before.project_id !== key.projectId) {
      throw refuse.forbidden(
        'This annotation belongs to another project of the organization. Change it there.',
      );
    }
    const patch = given(input);
    const isShared = patch.scope === 'organization' && before.scope !== 'organization';
    if (isShared) await expectRoom(client, key.projectId, true, false);
    await updateAnnotation(client, key, patch);
    const after = (await findAnnotation(client, key)) as AnnotationRow;
    await audit(client, actor, {
      ...{ scope: 'Annotation', itemId: String(after.id), projectId: key.projectId },
      activity: !before.deleted && after.deleted ? 'deleted' : 'updated',
      detail: changes(before, patch),
    });
    return after;
  });
}
