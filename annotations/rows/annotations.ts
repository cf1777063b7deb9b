import { containsPattern } from '../../db/like.ts';
import type { Pool, Queryable } from '../../db/pool.ts';
import { reading } from '../../db/reading.ts';
import { updateRow } from '../../db/update.ts';
import { type ShownUser, shownUser } from '../../db/users.ts';
import type { AnnotationScope, CreationType } from '../rules/annotations.ts';

export interface AnnotationRow {
  project_id: number;
  id: number;
  content: string | null;
  /** The time that it is about. */
  date_marker: string | null;
  scope: AnnotationScope;
  creation_type: CreationType;
  dashboard_item: number | null;
  dashboard_id: number | null;
  emoji: string | null;
  hidden_in_user_interface: boolean | null;
  deleted: boolean;
  created_by: ShownUser | null;
  created_at: string;
  updated_at: string;
}

const WRITABLE = [
  ...(['content', 'date_marker', 'scope', 'creation_type'] as const),
  ...(['dashboard_item', 'dashboard_id', 'emoji', 'hidden_in_user_interface', 'deleted'] as const),
] as const;
export type AnnotationFields = Pick<AnnotationRow, (typeof WRITABLE)[number]>;

const COLUMNS = `a.project_id, a.id, a.content, a.date_marker, a.scope, a.creation_type, a.dashboard_item, a.dashboard_id,
  a.emoji, a.hidden_in_user_interface, a.deleted, a.created_at, a.updated_at, ${shownUser('a.created_by')} as created_by`;

/** Those of the project `$1`, and those of its organization that other projects have. */
const VISIBLE = `(a.project_id = $1 or a.scope = 'organization' and a.project_id in (
  select other.id from projects own join projects other on other.organization_id = own.organization_id where own.id = $1))`;

export interface AnnotationKey {
  projectId: number;
  annotationId: number;
}

export async function insertAnnotation(
  queryable: Queryable,
  row: AnnotationFields & { project_id: number; created_by: number | null },
): Promise<AnnotationRow> {
  const { rows } = await queryable.query(
    `with a as (
       insert into annotations (project_id, created_by, ${WRITABLE.join(', ')})
       values ($1, $2, ${WRITABLE.map((_, index) => `$${index + 3}`).join(', ')}) returning *)
     select ${COLUMNS} from a`,
    [row.project_id, row.created_by, ...WRITABLE.map((column) => row[column])],
  );
  return rows[0];
}

/** Finds an annotation that the project shows, a deleted one too. It may belong to another project of the organization. */
export async function findAnnotation(
  queryable: Queryable,
  { projectId, annotationId }: AnnotationKey,
): Promise<AnnotationRow | undefined> {
  const { rows } = await queryable.query(
    `select ${COLUMNS} from annotations a where ${VISIBLE} and a.id = $2`,
    [projectId, annotationId],
  );
  return rows[0];
}

export async function updateAnnotation(
  queryable: Queryable,
  { projectId, annotationId }: AnnotationKey,
  fields: Partial<AnnotationFields>,
): Promise<void> {
  await updateRow(queryable, 'annotations', { project_id: projectId, id: annotationId }, WRITABLE, fields, {
    stamp: true,
  });
}

/** Counts the annotations of a project, deleted ones too, and those of them that the whole organization sees. */
export async function countAnnotations(
  queryable: Queryable,
  projectId: number,
): Promise<{ all: number; shared: number }> {
  const { rows } = await queryable.query(
    `select count(*)::int as all, (count(*) filter (where scope = 'organization'))::int as shared
     from annotations where project_id = $1`,
    [projectId],
  );
  return rows[0];
}

export interface AnnotationQuery {
  projectId: number;
  limit: number;
  offset: number;
  /** Words that the content has, each of them, in any case. */
  search: readonly string[];
  scope?: AnnotationScope | undefined;
  /** Only those that are hidden, or only those that are not. */
  isHidden?: boolean | undefined;
  from?: string | undefined;
  to?: string | undefined;
}

/** Lists annotations by the times that they are about, the latest first. Those about no time come first. */
export async function listAnnotations(
  readingPool: Pool,
  { projectId, limit, offset, search, scope, isHidden, from, to }: AnnotationQuery,
  signal?: AbortSignal,
): Promise<{ count: number; rows: AnnotationRow[] }> {
  // An annotation without a content has no word in it. Without a search it is listed too.
  const searched = search.length > 0 ? 'a.content ilike all ($2::text[])' : '$2::text[] is not null';
  const where = `${VISIBLE} and not a.deleted and ${searched}
    and ($3::text is null or a.scope = $3)
    and ($4::timestamptz is null or a.date_marker >= $4) and ($5::timestamptz is null or a.date_marker <= $5)
    and ($6::boolean is null or coalesce(a.hidden_in_user_interface, false) = $6)`;
  const values = [
    ...[projectId, search.map(containsPattern), scope ?? null, from ?? null, to ?? null],
    isHidden ?? null,
  ];
  return reading(readingPool, { projectId, signal }, async (client) => {
    const counted = await client.query(
      `select count(*)::int as count from annotations a where ${where}`,
      values,
    );
    const { rows } = await client.query(
      `select ${COLUMNS} from annotations a where ${where}
       order by a.date_marker desc, a.id desc limit $7 offset $8`,
      [...values, limit, offset],
    );
    return { count: counted.rows[0].count, rows };
  });
}
