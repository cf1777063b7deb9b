import { ensureEventPartitions } from '../../db/event-partitions.ts';
import { type Pool, transaction } from '../../db/pool.ts';
import { createOrganization } from '../../tenancy/organizations.ts';
import { issuePersonalApiKey } from '../../tenancy/personal-api-keys.ts';
import { newProjectToken } from '../../tenancy/tokens.ts';
import { createUser } from '../../tenancy/users.ts';
import { createEvents } from '../export-formats/dataset.ts';

/** Somebody with an organization, a project, a personal key and exports. */
export interface Tenant {
  projectId: number;
  token: string;
  key: string;
  /** The id of one of its exports. */
  exportId: string;
}

const HOUR = 3_600_000;
const MINUTE = 60_000;

async function createTenant(pool: Pool, name: string) {
  return transaction(pool, async (client) => {
    const user = await createUser(client, { email: `${name}@example.com`, firstName: name });
    if (!user) throw new Error(`the address of ${name} is taken`);
    const { organizationId, project } = await createOrganization(client, { name, userId: user.id });
    const { value: key } = await issuePersonalApiKey(client, { userId: user.id, label: name, scopes: ['*'] });
    return { organizationId, projectId: project.id, token: project.api_token, key };
  });
}

async function createExports(port: number, { projectId, key }: { projectId: number; key: string }) {
  let id = '';
  for (let n = 0; n < 5; n += 1) {
    const answer = await fetch(`http://127.0.0.1:${port}/api/projects/${projectId}/batch_exports/`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify({
        ...{ name: `Export ${n}`, interval: 'hour', paused: true },
        destination: { type: 'NoOp', config: {} },
      }),
    });
    const made = (await answer.json()) as { id: string };
    if (answer.status !== 201) throw new Error(`an export was not created: ${JSON.stringify(made)}`);
    id = made.id;
  }
  return id;
}

async function createPersons(pool: Pool, projectId: number, persons: number): Promise<void> {
  await pool.query(
    `with made as (
       insert into persons (project_id, id, created_at, is_identified, properties, version, changed_at)
       select $1, gen_random_uuid(), now() - make_interval(secs => n), true,
         jsonb_build_object('email', 'user-' || n || '@example.com', 'name', 'User ' || n, 'plan', n % 3), 0, now()
       from generate_series(1, $2::int) as n
       returning project_id, id, split_part(properties ->> 'email', '@', 1) as distinct_id)
     insert into person_distinct_ids (project_id, distinct_id, person_id, version, changed_at)
     select project_id, distinct_id, id, 0, now() from made`,
    [projectId, persons],
  );
}

/**
 * Creates who behaves and who misbehaves, with events in the last complete hour. `coldKeys` are project keys of the one
 * who behaves, one for each of its other projects.
 */
export async function createTenants(pool: Pool, port: number, options: { events: number; coldKeys: number }) {
  const misbehaving = await createTenant(pool, 'Misbehaving');
  const behaving = await createTenant(pool, 'Behaving');
  const { rows } = await pool.query(
    `insert into projects (uuid, organization_id, name, api_token)
     select gen_random_uuid(), $1, 'Project ' || api_token, api_token from unnest($2::text[]) as api_token
     returning api_token`,
    [behaving.organizationId, Array.from({ length: options.coldKeys }, newProjectToken)],
  );
  // Otherwise maintenance would move the rows into partitions during the measurement.
  await ensureEventPartitions(pool, new Date(), 1);
  const hour = Math.floor(Date.now() / HOUR) * HOUR - HOUR;
  const client = await pool.connect();
  try {
    await createEvents(client, options.events, new Date(hour + MINUTE));
    // The data set is that of project 1.
    await client.query('update events set project_id = $1', [misbehaving.projectId]);
    const { rows: columns } = await client.query(
      `select string_agg(quote_ident(column_name), ', ') as names from information_schema.columns
       where table_schema = 'public' and table_name = 'events' and column_name not in ('uuid', 'project_id')`,
    );
    await client.query(
      `insert into events (uuid, project_id, ${columns[0].names})
       select uuidv7(), $1, ${columns[0].names} from events limit $2`,
      [behaving.projectId, Math.ceil(options.events / 10)],
    );
  } finally {
    client.release();
  }
  await createPersons(pool, misbehaving.projectId, 50_000);
  await createPersons(pool, behaving.projectId, 2_000);
  await pool.query('vacuum (analyze) events, persons, person_distinct_ids');
  await pool.query('checkpoint');
  return {
    misbehaving: { ...misbehaving, exportId: await createExports(port, misbehaving) },
    behaving: { ...behaving, exportId: await createExports(port, behaving) },
    coldKeys: rows.map((row) => row.api_token as string),
  };
}
