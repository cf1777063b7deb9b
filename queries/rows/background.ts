import { type Pool, type Queryable, type Transaction, transaction } from '../../db/pool.ts';
import type { QueryRequest } from '../rules/request.ts';
import { LOCK_KINDS } from './locks.ts';

/** So long a query waits at most, and its result is kept. */
const KEPT = '1 hour';
/** So long a claim lasts that is not renewed, in milliseconds. */
export const CLAIM_MS = 15_000;

/** What is asked in the background. */
export interface BackgroundRequest {
  query: QueryRequest;
  explain: boolean;
}

/** Why a query has failed, for whoever asked. */
export interface BackgroundError {
  message: string;
  /** The field of the request that is wrong, if one is. */
  attr: string | null;
  reason: string | null;
}

export interface BackgroundRow {
  project_id: number;
  id: string;
  state: 'waiting' | 'running' | 'completed' | 'failed';
  request: BackgroundRequest | null;
  created_at: string;
  started_at: string | null;
  finished_at: string | null;
  expires_at: string;
  error: BackgroundError | null;
  /** Names the result, if there is one. */
  result: string | null;
}

/** A query that this process may answer. */
export interface Claimed {
  claim: string;
  projectId: number;
  id: string;
  request: BackgroundRequest;
  /** How many claims of it there were, with this one. */
  attempts: number;
}

type Key = Pick<Claimed, 'projectId' | 'id'>;
type Claim = Pick<Claimed, 'projectId' | 'id' | 'claim'>;

const COLUMNS =
  'project_id, id, state, request, created_at, started_at, finished_at, expires_at, error, result';
/** Whether somebody is answering it. Otherwise whoever was has died. */
const IS_CLAIMED = "state = 'running' and claimed_until > clock_timestamp()";
const OWN = "project_id = $1 and id = $2 and claim = $3 and state = 'running'";
const keyOf = ({ projectId, id }: Key) => [projectId, id];
const ownOf = ({ projectId, id, claim }: Claim) => [projectId, id, claim];

/** Locks the queries of a project in the background until the transaction ends, so that two are not counted at once. */
export const lockBackground = (client: Transaction, projectId: number) =>
  client.query('select pg_advisory_xact_lock($1, $2)', [LOCK_KINDS.backgroundOfProject, projectId]);

export async function findBackground(queryable: Queryable, key: Key): Promise<BackgroundRow | undefined> {
  const { rows } = await queryable.query(
    `select ${COLUMNS} from background_queries where project_id = $1 and id = $2 and expires_at > now()`,
    keyOf(key),
  );
  return rows[0];
}

/** How many queries of a project wait or run. */
export async function countOpen(queryable: Queryable, projectId: number): Promise<number> {
  const { rows } = await queryable.query(
    `select count(*) as count from background_queries
     where project_id = $1 and state in ('waiting', 'running') and expires_at > now()`,
    [projectId],
  );
  return rows[0].count;
}

/** Writes a new query, in the place of one with its id that has ended. */
export async function insertBackground(
  client: Transaction,
  key: Key,
  request: BackgroundRequest,
): Promise<BackgroundRow> {
  await deleteBackground(client, key);
  const { rows } = await client.query(
    `insert into background_queries (project_id, id, request, expires_at) values ($1, $2, $3, now() + $4::interval)
     returning ${COLUMNS}`,
    [...keyOf(key), JSON.stringify(request), KEPT],
  );
  return rows[0];
}

/**
 * Deletes a query with its result. Whoever answers it learns that from its next renewal. False: there is none, or its time is
 * over.
 */
export async function deleteBackground(queryable: Queryable, key: Key): Promise<boolean> {
  const { rows } = await queryable.query(
    'delete from background_queries where project_id = $1 and id = $2 returning expires_at > now() as lasts',
    keyOf(key),
  );
  return rows[0]?.lasts === true;
}

/**
 * Claims the query that is next: of the projects for which nobody works at the moment, the one that was asked first. Projects that
 * had a turn lately come behind the others, in the order of their turns (`latest`). Otherwise, all that one has asked before would
 * come first. Undefined: there is none.
 */
export async function claimBackground(
  pool: Pool,
  claim: string,
  latest: readonly number[] = [],
): Promise<Claimed | undefined> {
  const { rowCount } = await pool.query(
    "select from background_queries where state in ('waiting', 'running') limit 1",
  );
  if (rowCount === 0) return undefined;
  return transaction(pool, async (client) => {
    await client.query('select pg_advisory_xact_lock($1, 0)', [LOCK_KINDS.backgroundClaims]);
    const { rows } = await client.query(
      `update background_queries set state = 'running', claim = $1, attempts = attempts + 1,
         claimed_until = clock_timestamp() + $2 * interval '1 millisecond', started_at = coalesce(started_at, clock_timestamp())
       where (project_id, id) = (
         select project_id, id from background_queries
         where state in ('waiting', 'running') and due_at <= now() and expires_at > now()
           and project_id not in (select project_id from background_queries where ${IS_CLAIMED})
         order by coalesce(array_position($3::int[], project_id), 0), created_at, project_id, id limit 1)
       returning project_id, id, request, attempts`,
      [claim, CLAIM_MS, latest],
    );
    const [row] = rows;
    if (!row) return undefined;
    return { claim, projectId: row.project_id, id: row.id, request: row.request, attempts: row.attempts };
  });
}

/** Keeps a claim for a further time. False: the query was cancelled, or somebody else answers it. */
export async function renewClaim(pool: Pool, claim: Claim): Promise<boolean> {
  const { rowCount } = await pool.query(
    `update background_queries set claimed_until = clock_timestamp() + $4 * interval '1 millisecond' where ${OWN}`,
    [...ownOf(claim), CLAIM_MS],
  );
  return rowCount === 1;
}

/** Gives a claim back, for anybody to take after so many milliseconds. `isCounted`: it was an attempt. */
export async function releaseClaim(
  pool: Pool,
  claim: Claim,
  { afterMs, isCounted }: { afterMs: number; isCounted: boolean },
): Promise<void> {
  await pool.query(
    `update background_queries set state = 'waiting', claim = null, claimed_until = null,
       due_at = now() + $4 * interval '1 millisecond', attempts = attempts - $5::int where ${OWN}`,
    [...ownOf(claim), afterMs, isCounted ? 0 : 1],
  );
}

const END = `request = null, claim = null, claimed_until = null, finished_at = now(), expires_at = now() + $4::interval`;

/** Writes down why a query failed. */
export async function failBackground(pool: Pool, claim: Claim, error: BackgroundError): Promise<void> {
  await pool.query(`update background_queries set state = 'failed', error = $5, ${END} where ${OWN}`, [
    ...ownOf(claim),
    KEPT,
    JSON.stringify(error),
  ]);
}

/** Writes the result of a query, unless it was cancelled or somebody else answers it. */
export async function completeBackground(pool: Pool, claim: Claim, parts: readonly Buffer[]): Promise<void> {
  const bytes = parts.reduce((sum, part) => sum + part.length, 0);
  await transaction(pool, async (client) => {
    const { rowCount } = await client.query(
      `update background_queries set state = 'completed', result = $3, bytes = $5, ${END} where ${OWN}`,
      [...ownOf(claim), KEPT, bytes],
    );
    if (rowCount === 0) return;
    for (const [number, part] of parts.entries()) {
      await client.query(
        'insert into background_query_parts (project_id, result, number, part) values ($1, $2, $3, $4)',
        [claim.projectId, claim.claim, number, part],
      );
    }
  });
}

/** Deletes the oldest results of a project, until so many and so many bytes are left. */
export async function keepNewest(
  queryable: Queryable,
  projectId: number,
  { most, mostBytes }: { most: number; mostBytes: number },
): Promise<void> {
  await queryable.query(
    `delete from background_queries where project_id = $1 and id in (
       select id from (
         select id, row_number() over newest as place, sum(bytes) over newest as bytes from background_queries
         where project_id = $1 and state in ('completed', 'failed') window newest as (order by finished_at desc, id)
       ) one where place > $2 or bytes > $3)`,
    [projectId, most, mostBytes],
  );
}

/** Reads a result part by part. It ends early if the result is deleted meanwhile. */
export async function* partsOf(pool: Pool, projectId: number, result: string): AsyncGenerator<Buffer> {
  for (let number = 0; ; number += 1) {
    const { rows } = await pool.query(
      'select part from background_query_parts where project_id = $1 and result = $2 and number = $3',
      [projectId, result, number],
    );
    if (rows.length === 0) return;
    yield rows[0].part;
  }
}

/** Deletes some queries and results whose time is over. Returns how many. */
export async function expireBackground(queryable: Queryable, limit: number): Promise<number> {
  const { rowCount } = await queryable.query(
    `delete from background_queries where ctid = any(array(
       select ctid from background_queries where expires_at <= now() limit $1)) and expires_at <= now()`,
    [limit],
  );
  return rowCount ?? 0;
}
