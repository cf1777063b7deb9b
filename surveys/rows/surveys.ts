import { containsPattern } from '../../db/like.ts';
import type { Queryable, Transaction } from '../../db/pool.ts';
import { fits } from '../../db/reading.ts';
import { type ShownUser, shownUser } from '../../db/users.ts';
import type { Question } from '../rules/questions.ts';
import type { Schedule, SurveyType } from '../rules/surveys.ts';

type Fields = Record<string, unknown>;

export interface LinkedFlag {
  id: number;
  key: string;
  name: string;
  active: boolean;
  filters: Fields;
}

export interface SurveyRow {
  project_id: number;
  id: string;
  name: string;
  description: string;
  type: SurveyType;
  schedule: Schedule;
  questions: Question[];
  conditions: Fields | null;
  appearance: Fields | null;
  linked_flag_id: number | null;
  targeting_flag_id: number | null;
  internal_targeting_flag_id: number | null;
  linked_flag: LinkedFlag | null;
  targeting_flag: LinkedFlag | null;
  internal_targeting_flag: LinkedFlag | null;
  start_date: string | null;
  end_date: string | null;
  archived: boolean;
  responses_limit: number | null;
  enable_partial_responses: boolean;
  iteration_count: number | null;
  iteration_frequency_days: number | null;
  /** Which iteration runs, counted from 1. Null: the survey is asked once, or has not begun. */
  current_iteration: number | null;
  current_iteration_start_date: string | null;
  created_by: ShownUser | null;
  created_at: string;
  updated_at: string;
}

const DOCUMENTS = ['questions', 'conditions', 'appearance'] as const;
const WRITABLE = [
  ...(['name', 'description', 'type', 'schedule', ...DOCUMENTS] as const),
  ...(['linked_flag_id', 'targeting_flag_id', 'internal_targeting_flag_id'] as const),
  ...(['start_date', 'end_date', 'archived', 'responses_limit', 'enable_partial_responses'] as const),
  ...(['iteration_count', 'iteration_frequency_days'] as const),
  ...(['current_iteration', 'current_iteration_start_date'] as const),
] as const;
export type SurveyFields = Pick<SurveyRow, (typeof WRITABLE)[number]>;

export interface SurveyKey {
  projectId: number;
  surveyId: string;
}

const flag = (column: string) =>
  `(select json_build_object('id', f.id, 'key', f.key, 'name', f.name, 'active', f.active, 'filters', f.filters)
    from feature_flags f where f.project_id = s.project_id and f.id = s.${column} and not f.deleted)`;
const COLUMNS = `s.*, ${flag('linked_flag_id')} as linked_flag, ${flag('targeting_flag_id')} as targeting_flag,
  ${flag('internal_targeting_flag_id')} as internal_targeting_flag, ${shownUser('s.created_by')} as shown_creator`;

const shown = ({ shown_creator, ...row }: SurveyRow & { shown_creator: ShownUser | null }): SurveyRow => ({
  ...row,
  created_by: shown_creator,
});

const written = (row: Partial<SurveyFields>, column: (typeof WRITABLE)[number]) => {
  const value = row[column];
  return (DOCUMENTS as readonly string[]).includes(column) && value !== null ? JSON.stringify(value) : value;
};

export async function insertSurvey(
  queryable: Queryable,
  row: SurveyFields & { project_id: number; id: string; created_by: number | null },
): Promise<SurveyRow> {
  const { rows } = await queryable.query(
    `with s as (
       insert into surveys (project_id, id, created_by, ${WRITABLE.join(', ')})
       values ($1, $2, $3, ${WRITABLE.map((_, index) => `$${index + 4}`).join(', ')}) returning *)
     select ${COLUMNS} from s`,
    [row.project_id, row.id, row.created_by, ...WRITABLE.map((column) => written(row, column))],
  );
  return shown(rows[0]);
}

/** Locks a survey until the transaction ends. */
export async function lockSurvey(client: Transaction, { projectId, surveyId }: SurveyKey): Promise<void> {
  await client.query('select from surveys where project_id = $1 and id = $2 for update', [
    projectId,
    surveyId,
  ]);
}

export async function findSurvey(
  queryable: Queryable,
  { projectId, surveyId }: SurveyKey,
): Promise<SurveyRow | undefined> {
  const { rows } = await queryable.query(
    `select ${COLUMNS} from surveys s where s.project_id = $1 and s.id = $2`,
    [projectId, surveyId],
  );
  return rows[0] && shown(rows[0]);
}

/** Changes a survey and returns it. */
export async function updateSurvey(
  queryable: Queryable,
  { projectId, surveyId }: SurveyKey,
  fields: SurveyFields,
): Promise<SurveyRow> {
  const { rows } = await queryable.query(
    `with s as (
       update surveys set ${WRITABLE.map((column, index) => `${column} = $${index + 3}`).join(', ')},
         updated_at = clock_timestamp()
       where project_id = $1 and id = $2 returning *)
     select ${COLUMNS} from s`,
    [projectId, surveyId, ...WRITABLE.map((column) => written(fields, column))],
  );
  return shown(rows[0]);
}

export async function deleteSurvey(queryable: Queryable, { projectId, surveyId }: SurveyKey): Promise<void> {
  await queryable.query('delete from surveys where project_id = $1 and id = $2', [projectId, surveyId]);
}

export interface SurveyQuery {
  projectId: number;
  limit: number;
  offset: number;
  search?: string | undefined;
  archived?: boolean | undefined;
  type?: SurveyType | undefined;
  ids?: string[] | undefined;
}

/** Lists surveys, newest first. */
export async function listSurveys(
  queryable: Queryable,
  { projectId, limit, offset, search, archived, type, ids }: SurveyQuery,
): Promise<{ count: number; rows: SurveyRow[] }> {
  const where = `s.project_id = $1 and ($2::text is null or s.name ilike $2 or s.description ilike $2)
    and ($3::boolean is null or s.archived = $3) and ($4::text is null or s.type = $4)
    and ($5::uuid[] is null or s.id = any($5))`;
  const pattern = search ? containsPattern(search) : null;
  const values = [projectId, pattern, archived ?? null, type ?? null, ids ?? null];
  const counted = await queryable.query(
    `select count(*)::int as count from surveys s where ${where}`,
    values,
  );
  const order = 'order by s.created_at desc, s.id desc';
  // Several surveys may show the same long flag.
  const { rows } = await queryable.query(
    `with fitting as (
       select s.id, row_number() over (${order}) as number, sum(s.document_bytes + coalesce((
         select sum(f.filter_bytes) from unnest(s.flags) as named (id)
         join feature_flags f on f.project_id = $1 and f.id = named.id and not f.deleted), 0))
         over (${order} rows unbounded preceding) as bytes
       from (select s.id, s.created_at, s.document_bytes,
           array[s.linked_flag_id, s.targeting_flag_id, s.internal_targeting_flag_id] as flags
         from surveys s where ${where} ${order} limit $6 offset $7) s)
     select ${COLUMNS} from fitting n join surveys s on s.project_id = $1 and s.id = n.id
     where ${fits('n')} order by n.number`,
    [...values, limit, offset],
  );
  return { count: counted.rows[0].count, rows: rows.map(shown) };
}

/** How many surveys a project has, and the bytes of their documents. One survey is left out. */
export async function sizeOfSurveys(
  queryable: Queryable,
  projectId: number,
  without: string | null,
): Promise<{ surveys: number; bytes: number }> {
  const { rows } = await queryable.query(
    `select count(*)::int as surveys, coalesce(sum(document_bytes), 0)::float8 as bytes from surveys
     where project_id = $1 and id is distinct from $2`,
    [projectId, without],
  );
  return rows[0];
}

/** A survey as clients get it. */
export type OfferedSurvey = Record<string, unknown> & { id: string };

/**
 * Lists the surveys of a project that run, the oldest first: as many as fit into so many bytes. Descriptions are for those who
 * manage surveys, and are left out.
 */
export async function offeredSurveys(
  queryable: Queryable,
  projectId: number,
  bytes: number,
): Promise<OfferedSurvey[]> {
  const key = (column: string) =>
    `(select f.key from feature_flags f where f.project_id = s.project_id and f.id = s.${column} and not f.deleted)`;
  const { rows } = await queryable.query(
    `with fitting as (
       select id, sum(document_bytes) over (order by created_at, id rows unbounded preceding) as bytes from surveys
       where project_id = $1 and start_date is not null and end_date is null and not archived)
     select s.id, s.name, s.type, s.schedule, s.questions, s.conditions, s.appearance, s.start_date,
       s.end_date, s.enable_partial_responses, s.current_iteration, s.current_iteration_start_date, ${key('linked_flag_id')} as linked_flag_key,
       ${key('targeting_flag_id')} as targeting_flag_key,
       ${key('internal_targeting_flag_id')} as internal_targeting_flag_key
     from fitting n join surveys s on s.project_id = $1 and s.id = n.id
     where n.bytes <= $2 order by s.created_at, s.id`,
    [projectId, bytes],
  );
  return rows.map((row) => ({ ...row, feature_flag_keys: null }));
}

/** Lists running surveys that are asked again and again, after one of them. */
export async function repeatedSurveys(
  queryable: Queryable,
  after: string,
  limit: number,
): Promise<
  {
    start_date: string;
    iteration_count: number;
    iteration_frequency_days: number;
    project_id: number;
    id: string;
    current_iteration: number;
  }[]
> {
  const { rows } = await queryable.query(
    `select project_id, id, start_date, iteration_count, iteration_frequency_days, current_iteration from surveys
     where current_iteration is not null and start_date is not null and end_date is null and not archived and id > $1
     order by id limit $2`,
    [after, limit],
  );
  return rows;
}

/** Running surveys that end when they have enough answers. */
const IS_LIMITED =
  'responses_limit is not null and start_date is not null and end_date is null and not archived';

/** Lists the projects with surveys that end after some number of answers. */
export async function projectsWithLimits(queryable: Queryable): Promise<number[]> {
  const { rows } = await queryable.query(
    `select distinct project_id from surveys where ${IS_LIMITED} order by project_id`,
  );
  return rows.map((row) => row.project_id);
}

/**
 * Finds the surveys of a project that have been answered to the end as often as they want since they began. The events of
 * the project are read once, however many surveys there are.
 */
export async function fullSurveys(
  queryable: Queryable,
  projectId: number,
): Promise<{ id: string; responses_limit: number }[]> {
  const { rows } = await queryable.query(
    `with limited as materialized (
       select id::text, start_date, responses_limit from surveys where project_id = $1 and ${IS_LIMITED}),
     answers as (
       select properties->>'$survey_id' as id, timestamp from events
       where project_id = $1 and timestamp >= (select min(start_date) from limited) and event = 'survey sent'
         and coalesce(properties->>'$survey_completed', 'true') <> 'false')
     select l.id, l.responses_limit from limited l join answers a on a.id = l.id and a.timestamp >= l.start_date
     group by l.id, l.responses_limit having count(*) >= l.responses_limit order by l.id`,
    [projectId],
  );
  return rows;
}

/** Ends a survey that runs. Answers whether it ran. */
export async function endSurvey(queryable: Queryable, { projectId, surveyId }: SurveyKey): Promise<boolean> {
  const { rowCount } = await queryable.query(
    `update surveys set end_date = clock_timestamp(), updated_at = clock_timestamp()
     where project_id = $1 and id = $2 and end_date is null`,
    [projectId, surveyId],
  );
  return (rowCount ?? 0) > 0;
}

/** Notifies of projects whose surveys have changed. */
export const SURVEYS_CHANNEL = 'sluice_public_offers';
