import { newestPage } from '../../db/newest-page.ts';
import type { Queryable, Transaction } from '../../db/pool.ts';
import { type ShownUser, shownUser } from '../../db/users.ts';

export interface IntegrationRow {
  project_id: number;
  id: number;
  kind: string;
  config: Record<string, unknown>;
  /** The secret keys of the configuration, encrypted by `reads/settings.ts`. */
  secrets: string;
  created_at: string;
  created_by: ShownUser | null;
  updated_at: string;
}

/** Identifies an integration. */
export interface IntegrationKey {
  projectId: number;
  integrationId: number;
}

export const keyOf = (row: Pick<IntegrationRow, 'project_id' | 'id'>): IntegrationKey => ({
  projectId: row.project_id,
  integrationId: row.id,
});

const COLUMNS = `i.project_id, i.id, i.kind, i.config, i.secrets, i.created_at, i.updated_at,
  ${shownUser('i.created_by')} as created_by`;

/** Takes an id for a new integration. Its secrets are sealed for this id. */
export async function nextIntegrationId(queryable: Queryable): Promise<number> {
  const { rows } = await queryable.query(
    `select nextval(pg_get_serial_sequence('integrations', 'id'))::integer as id`,
  );
  return rows[0].id;
}

export async function insertIntegration(
  queryable: Queryable,
  row: Pick<IntegrationRow, 'project_id' | 'id' | 'kind' | 'config' | 'secrets'> & {
    created_by: number | null;
  },
): Promise<IntegrationRow> {
  const { rows } = await queryable.query(
    `with i as (
       insert into integrations (project_id, id, kind, config, secrets, created_by) overriding system value
       values ($1, $2, $3, $4, $5, $6) returning *)
     select ${COLUMNS} from i`,
    [row.project_id, row.id, row.kind, JSON.stringify(row.config), row.secrets, row.created_by],
  );
  return rows[0];
}

/** Changes an integration and returns it. Undefined: there is no such integration. */
export async function updateIntegration(
  queryable: Queryable,
  { projectId, integrationId }: IntegrationKey,
  { config, secrets }: Pick<IntegrationRow, 'config' | 'secrets'>,
): Promise<IntegrationRow | undefined> {
  const { rows } = await queryable.query(
    `with i as (
       update integrations set config = $3, secrets = $4, updated_at = clock_timestamp()
       where project_id = $1 and id = $2 returning *)
     select ${COLUMNS} from i`,
    [projectId, integrationId, JSON.stringify(config), secrets],
  );
  return rows[0];
}

export async function findIntegration(
  queryable: Queryable,
  { projectId, integrationId }: IntegrationKey,
): Promise<IntegrationRow | undefined> {
  const { rows } = await queryable.query(
    `select ${COLUMNS} from integrations i where i.project_id = $1 and i.id = $2`,
    [projectId, integrationId],
  );
  return rows[0];
}

/** Finds an integration and locks it until the transaction ends, so that nobody else can change it. */
export async function lockIntegration(
  client: Transaction,
  { projectId, integrationId }: IntegrationKey,
): Promise<IntegrationRow | undefined> {
  const { rows } = await client.query(
    `select ${COLUMNS} from integrations i where i.project_id = $1 and i.id = $2 for update of i`,
    [projectId, integrationId],
  );
  return rows[0];
}

const LISTED = {
  ...{ table: 'integrations', as: 'i', columns: COLUMNS, large: 'config, secrets' },
  where: 'project_id = $1 and ($2::text is null or kind = $2)',
};

/** Lists the integrations of a project, newest first, of one kind or of all. */
export async function listIntegrations(
  queryable: Queryable,
  projectId: number,
  { kind, limit, offset }: { kind?: string | undefined; limit: number; offset: number },
): Promise<{ count: number; rows: IntegrationRow[] }> {
  return newestPage(queryable, { ...LISTED, values: [projectId, kind ?? null] }, { limit, offset });
}

/** Answers whether a project has at least so many integrations. */
export async function hasIntegrations(
  queryable: Queryable,
  projectId: number,
  atLeast: number,
): Promise<boolean> {
  const { rows } = await queryable.query('select from integrations where project_id = $1 offset $2 limit 1', [
    projectId,
    atLeast - 1,
  ]);
  return rows.length > 0;
}

/** Deletes an integration, its secrets with it. Undefined: there is no such integration. */
export async function deleteIntegration(
  queryable: Queryable,
  { projectId, integrationId }: IntegrationKey,
): Promise<Pick<IntegrationRow, 'kind' | 'config'> | undefined> {
  const { rows } = await queryable.query(
    'delete from integrations where project_id = $1 and id = $2 returning kind, config',
    [projectId, integrationId],
  );
  return rows[0];
}
