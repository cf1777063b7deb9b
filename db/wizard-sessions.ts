import type { Queryable } from './pool.ts';

/** A session of the setup wizard. `hash` is the hash of what its client shows, which is a secret. */
export interface WizardSessionRow {
  hash: string;
  user_id: number | null;
  project_id: number | null;
}

export async function insertWizardSession(
  queryable: Queryable,
  hash: string,
  seconds: number,
): Promise<void> {
  await queryable.query(
    'insert into wizard_sessions (hash, expires_at) values ($1, now() + make_interval(secs => $2))',
    [hash, seconds],
  );
}

export async function findWizardSession(
  queryable: Queryable,
  hash: string,
): Promise<WizardSessionRow | undefined> {
  const { rows } = await queryable.query(
    'select hash, user_id, project_id from wizard_sessions where hash = $1 and expires_at > now()',
    [hash],
  );
  return rows[0];
}

/**
 * Connects a session to a user and a project. Returns false if the session is unknown, has expired or belongs to
 * another user.
 */
export async function authenticateWizardSession(
  queryable: Queryable,
  hash: string,
  userId: number,
  projectId: number,
): Promise<boolean> {
  const { rowCount } = await queryable.query(
    `update wizard_sessions set user_id = $2, project_id = $3
     where hash = $1 and expires_at > now() and (user_id is null or user_id = $2)`,
    [hash, userId, projectId],
  );
  return rowCount === 1;
}

export async function deleteExpiredWizardSessions(queryable: Queryable): Promise<number> {
  const { rowCount } = await queryable.query('delete from wizard_sessions where expires_at <= now()');
  return rowCount ?? 0;
}
