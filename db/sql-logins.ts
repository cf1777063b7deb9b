import type { Queryable } from './pool.ts';

/** A role with which somebody reads one project in a SQL client. */
export interface SqlLoginRow {
  role: string;
  project_id: number;
  /** How many connections the role may have at once. */
  connections: number;
  created_at: string;
  /** Since when the role sees nothing and is to be dropped. */
  closed_at: string | null;
}

export interface ListedSqlLogin extends SqlLoginRow {
  /** Null: the project is gone. */
  project: string | null;
  /** Whether it was made for this database, and not for one of which this is a copy. */
  is_ours: boolean;
  /** Whether the server has such a role. */
  exists: boolean;
}

const THIS_DATABASE = '(select oid from pg_database where datname = current_database())';
const COLUMNS = 'l.role, l.project_id, l.connections, l.created_at, l.closed_at';

export async function findSqlLogin(
  queryable: Queryable,
  projectId: number,
): Promise<SqlLoginRow | undefined> {
  const { rows } = await queryable.query(
    `select ${COLUMNS} from sql_logins l
     where l.project_id = $1 and l.database = ${THIS_DATABASE} and l.closed_at is null`,
    [projectId],
  );
  return rows[0];
}

/** Forgets what a copied or restored database brought along for a project. */
const forgetForeign = (queryable: Queryable, projectId: number) =>
  queryable.query(`delete from sql_logins where project_id = $1 and database <> ${THIS_DATABASE}`, [
    projectId,
  ]);

export async function putSqlLogin(
  queryable: Queryable,
  login: Pick<SqlLoginRow, 'role' | 'project_id' | 'connections'>,
): Promise<void> {
  await forgetForeign(queryable, login.project_id);
  await queryable.query(
    `insert into sql_logins (role, project_id, database, connections) values ($1, $2, ${THIS_DATABASE}, $3)
     on conflict (role) do update set connections = excluded.connections`,
    [login.role, login.project_id, login.connections],
  );
}

export async function listSqlLogins(queryable: Queryable): Promise<ListedSqlLogin[]> {
  const { rows } = await queryable.query(
    `select ${COLUMNS}, p.name as project, l.database = ${THIS_DATABASE} as is_ours, r.oid is not null as exists
     from sql_logins l left join projects p on p.id = l.project_id left join pg_roles r on r.rolname = l.role
     order by l.project_id, l.created_at, l.role`,
  );
  return rows;
}

/** From the commit on, the login of a project sees nothing. */
export async function closeSqlLogins(queryable: Queryable, projectId: number): Promise<void> {
  await forgetForeign(queryable, projectId);
  await queryable.query(
    'update sql_logins set closed_at = now() where project_id = $1 and closed_at is null',
    [projectId],
  );
}

/** The roles of this database that are to be dropped. */
export async function closedSqlLogins(queryable: Queryable): Promise<string[]> {
  const { rows } = await queryable.query(
    `select role from sql_logins where closed_at is not null and database = ${THIS_DATABASE} order by role`,
  );
  return rows.map((row) => row.role);
}

export async function deleteSqlLogin(queryable: Queryable, role: string): Promise<void> {
  await queryable.query('delete from sql_logins where role = $1', [role]);
}

/** What a session of a login must not do. `memory` is seen by who runs on the same machine. */
export type SessionFault = 'closed' | 'lock' | 'transaction' | 'blocker' | 'memory';

export interface SqlSession {
  pid: number;
  role: string;
  /** The port of the client. Null: it is a process that helps another session. */
  port: number | null;
  /** When it began. With `pid`, it names the session. */
  since: string;
  fault: SessionFault | null;
}

/** So long a lock of a table is waited for before whoever holds it counts as in the way. */
const IN_THE_WAY = '300 ms';

/**
 * Lists the sessions of logins and ends those that have a fault: the login is closed, an advisory lock is held or waited
 * for, a transaction is older than so many seconds, or upkeep waits for a table that it reads. The user must inherit the
 * logins.
 */
export async function endFaultySessions(queryable: Queryable, mostSeconds: number): Promise<SqlSession[]> {
  const { rows } = await queryable.query(
    `select pid, role, port, since, fault, fault is not null and pg_terminate_backend(pid) as ended
     from (
       with blockers as (
         select unnest(pg_blocking_pids(w.pid)) as pid from pg_locks w
         where not w.granted and w.locktype = 'relation' and w.waitstart < clock_timestamp() - interval '${IN_THE_WAY}'
           and w.database = ${THIS_DATABASE}
           and not exists (select from pg_stat_activity v join sql_logins s on s.role = v.usename where v.pid = w.pid))
       select a.pid, a.usename::text as role, a.client_port as port, a.backend_start::text as since,
         case when l.closed_at is not null then 'closed'
           when exists (select from pg_locks k where k.pid = a.pid and k.locktype = 'advisory') then 'lock'
           when a.xact_start < clock_timestamp() - make_interval(secs => $1) then 'transaction'
           when a.pid in (select pid from blockers) then 'blocker' end as fault
       from sql_logins l join pg_stat_activity a on a.usename = l.role
       where l.database = ${THIS_DATABASE} and a.datname = current_database()
       offset 0) as sessions`,
    [mostSeconds],
  );
  return rows;
}

export async function endSession(queryable: Queryable, { pid, since }: SqlSession): Promise<void> {
  await queryable.query(
    'select pg_terminate_backend(pid) from pg_stat_activity where pid = $1 and backend_start = $2',
    [pid, since],
  );
}
