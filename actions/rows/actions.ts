import { newestPage } from '../../db/newest-page.ts';
import type { Queryable, Transaction } from '../../db/pool.ts';
import { type ShownUser, shownUser } from '../../db/users.ts';
import { LOCK_KINDS } from './locks.ts';

export type Matching = 'exact' | 'contains' | 'regex';

/** A step as it is stored and as the API shows it. A null field matches any event. */
export interface StepDocument {
  event: string | null;
  properties: Record<string, unknown>[] | null;
  selector: string | null;
  tag_name: string | null;
  text: string | null;
  text_matching: Matching | null;
  href: string | null;
  href_matching: Matching | null;
  url: string | null;
  url_matching: Matching | null;
}

export interface ActionRow {
  project_id: number;
  id: number;
  name: string | null;
  description: string;
  tags: string[];
  post_to_slack: boolean;
  slack_message_format: string;
  steps: StepDocument[];
  bytecode: unknown[];
  pinned_at: string | null;
  created_at: string;
  created_by: ShownUser | null;
  updated_at: string;
  deleted: boolean;
  version: number;
  changed_at: string;
}

const WRITABLE = [
  ...(['name', 'description', 'tags', 'post_to_slack', 'slack_message_format'] as const),
  ...(['steps', 'bytecode', 'pinned_at', 'deleted'] as const),
] as const;
const JSON_COLUMNS: ReadonlySet<string> = new Set(['steps', 'bytecode']);
/** The columns that decide which events the action matches. */
const MATCHING: readonly string[] = ['steps', 'deleted'];

export type ActionFields = Pick<ActionRow, (typeof WRITABLE)[number]>;

/** Identifies an action. */
export interface ActionKey {
  projectId: number;
  actionId: number;
}

export const keyOf = (row: Pick<ActionRow, 'project_id' | 'id'>): ActionKey => ({
  projectId: row.project_id,
  actionId: row.id,
});

const COLUMNS = `a.project_id, a.id, a.name, a.description, a.tags, a.post_to_slack, a.slack_message_format, a.steps,
  a.bytecode, a.pinned_at, a.created_at, a.updated_at, a.deleted, a.version, a.changed_at,
  ${shownUser('a.created_by')} as created_by`;

const stored = (column: string, value: unknown): unknown =>
  JSON_COLUMNS.has(column) ? JSON.stringify(value) : value;

export async function insertAction(
  queryable: Queryable,
  row: ActionFields & { project_id: number; created_by: number | null },
): Promise<ActionRow> {
  const columns = ['project_id', 'created_by', ...WRITABLE] as const;
  const { rows } = await queryable.query(
    `with a as (
       insert into actions (${columns.join(', ')})
       values (${columns.map((_, index) => `$${index + 1}`).join(', ')}) returning *)
     select ${COLUMNS} from a`,
    columns.map((column) => stored(column, row[column])),
  );
  return rows[0];
}

/** Changes an action and returns it. Undefined: there is no such action. */
export async function updateAction(
  queryable: Queryable,
  { projectId, actionId }: ActionKey,
  patch: Partial<ActionFields>,
): Promise<ActionRow | undefined> {
  const given = WRITABLE.filter((column) => patch[column] !== undefined);
  const assignments = given.map((column, index) => `${column} = $${index + 3}, `);
  const changes = given.some((column) => MATCHING.includes(column))
    ? 'version = version + 1, changed_at = clock_timestamp(), '
    : '';
  const { rows } = await queryable.query(
    `with a as (
       update actions set ${assignments.join('')}${changes}updated_at = clock_timestamp()
       where project_id = $1 and id = $2 returning *)
     select ${COLUMNS} from a`,
    [projectId, actionId, ...given.map((column) => stored(column, patch[column]))],
  );
  return rows[0];
}

/** Finds an action, also a deleted one. */
export async function findAction(
  queryable: Queryable,
  { projectId, actionId }: ActionKey,
): Promise<ActionRow | undefined> {
  const { rows } = await queryable.query(
    `select ${COLUMNS} from actions a where a.project_id = $1 and a.id = $2`,
    [projectId, actionId],
  );
  return rows[0];
}

/** Finds an action, also a deleted one, and locks it until the transaction ends, so that nobody else can change it. */
export async function lockAction(
  client: Transaction,
  { projectId, actionId }: ActionKey,
): Promise<ActionRow | undefined> {
  const { rows } = await client.query(
    `select ${COLUMNS} from actions a where a.project_id = $1 and a.id = $2 for update of a`,
    [projectId, actionId],
  );
  return rows[0];
}

const LISTED = {
  ...{ table: 'actions', as: 'a', columns: COLUMNS, large: 'description, tags, steps, bytecode' },
  where: 'project_id = $1 and not deleted',
};

/** Lists the actions of a project that are not deleted, newest first. */
export async function listActions(
  queryable: Queryable,
  projectId: number,
  { limit, offset }: { limit: number; offset: number },
): Promise<{ count: number; rows: ActionRow[] }> {
  return newestPage(queryable, { ...LISTED, values: [projectId] }, { limit, offset });
}

/** Answers whether a project has at least so many actions. */
export async function hasActions(queryable: Queryable, projectId: number, atLeast: number): Promise<boolean> {
  const { rows } = await queryable.query(
    'select from actions where project_id = $1 and not deleted offset $2 limit 1',
    [projectId, atLeast - 1],
  );
  return rows.length > 0;
}

/**
 * Finds another action of the project with this name. Locks the names of the project until the transaction ends, so
 * nobody else can take the name between this question and saving.
 */
export async function lockNamesake(
  client: Transaction,
  projectId: number,
  name: string,
  ownId: number | null,
): Promise<number | undefined> {
  await client.query('select pg_advisory_xact_lock($1, $2)', [LOCK_KINDS.actionNames, projectId]);
  const { rows } = await client.query(
    `select id from actions where project_id = $1 and name = $2 and not deleted and id is distinct from $3
     order by id limit 1`,
    [projectId, name, ownId],
  );
  return rows[0]?.id;
}

/** Lists the names, steps and versions of these actions of a project. Deleted actions are left out. */
export async function listSteps(
  queryable: Queryable,
  projectId: number,
  ids: readonly number[],
): Promise<Pick<ActionRow, 'id' | 'name' | 'steps' | 'version'>[]> {
  const { rows } = await queryable.query(
    'select id, name, steps, version from actions where project_id = $1 and id = any($2::int[]) and not deleted',
    [projectId, ids],
  );
  return rows;
}

/** Lists the versions of these actions of a project. Deleted actions are left out. */
export async function listVersions(
  queryable: Queryable,
  projectId: number,
  ids: readonly number[],
): Promise<Pick<ActionRow, 'id' | 'version'>[]> {
  const { rows } = await queryable.query(
    'select id, version from actions where project_id = $1 and id = any($2::int[]) and not deleted',
    [projectId, ids],
  );
  return rows;
}
