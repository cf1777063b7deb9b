import { randomUUID } from 'node:crypto';
import pg from 'pg';
import type { Pool } from '../../../db/pool.ts';
import { withLogin } from '../../../db/roles/address.ts';
import { insertEvents, insertGroup, insertPerson } from '../../support/rows.ts';

export const [MINE, THEIRS] = [1, 2];
export const PROJECTS = [MINE, THEIRS];
export const AT = '2026-03-02T10:00:00Z';
/** The id of a person, of a group, and of a session that began at the time of the events. */
const id = (project: number) => {
  const time = Date.parse(AT).toString(16).padStart(12, '0');
  return `${time.slice(0, 8)}-${time.slice(8)}-7000-8000-00000000000${project}`;
};

const wordOf = (project: number) => (project === MINE ? 'open' : 'secret');

/** The same rows for two projects. Each row of the second one says `secret`. */
export async function insertTwoProjects(pool: Pool): Promise<void> {
  await insertInOldTables(pool);
  for (const project_id of PROJECTS) {
    await pool.query('insert into deleted_groups values ($1, 0, $2, 1, $3, $3)', [
      project_id,
      `${wordOf(project_id)} deleted`,
      AT,
    ]);
  }
  await pool.query('analyze');
}

/** Those of them whose tables a database of an older version has, too. */
export async function insertInOldTables(pool: Pool): Promise<void> {
  for (const project_id of PROJECTS) {
    const word = wordOf(project_id);
    await insertEvents(
      pool,
      Array.from({ length: 3 }, (_, n) => ({
        project_id,
        timestamp: new Date(Date.parse(AT) + n * 60_000).toISOString(),
        event: `${word} event`,
        distinct_id: `${word} user`,
        properties: { word, n, $current_url: `https://${word}.example/` },
        person_id: id(project_id),
        person_properties: { email: `${word}@example.com` },
        session_id: id(project_id),
        group_0: 'acme',
      })),
    );
    await insertPerson(pool, project_id, {
      id: id(project_id),
      distinct_ids: [`${word} user`],
      properties: { email: `${word}@example.com` },
    });
    await insertGroup(pool, project_id, {
      id: id(project_id),
      group_type_index: 0,
      group_key: 'acme',
      properties: { word },
    });
    await pool.query(`insert into deleted_distinct_ids values ($1, $2, $3, 1, 1, $4, $4)`, [
      project_id,
      `${word} deleted`,
      id(project_id),
      AT,
    ]);
  }
}

/** The two projects themselves, in an organization. */
export async function insertProjects(pool: Pool): Promise<void> {
  await pool.query(
    `with made as (insert into organizations (id, name, slug) values (gen_random_uuid(), 'both', 'both') returning id)
     insert into projects (id, uuid, organization_id, name, api_token) overriding system value
     select one, gen_random_uuid(), made.id, 'project ' || one, 'phc_' || one from made, unnest($1::integer[]) as one`,
    [PROJECTS],
  );
}

export interface EmptyDatabase {
  /** With the superuser of the server. */
  admin: string;
  /** With a user who may do what the options say. */
  url: string;
  /** With another user of the server. */
  as(user: string): string;
}

/** Runs `work` with an empty database that a new user owns, or may only use. */
export async function withEmptyDatabase<T>(
  { attributes = '', owns = true }: { attributes?: string; owns?: boolean },
  work: (database: EmptyDatabase) => Promise<T>,
): Promise<T> {
  const name = `roles_${randomUUID().replaceAll('-', '')}`;
  const server = process.env.TEST_POSTGRES_URL as string;
  await execute(server, `create role ${name} login password '${PASSWORD}' ${attributes}`);
  await execute(server, `create database ${name} ${owns ? `owner ${name}` : ''}`);
  const at = (user?: string) => {
    const url = new URL(server);
    url.pathname = `/${name}`;
    return user === undefined ? url.href : withLogin(url.href, user, PASSWORD);
  };
  try {
    return await work({ admin: at(), url: at(name), as: at });
  } finally {
    await execute(server, `drop database ${name} with (force)`);
  }
}

export const PASSWORD = 'of a test';

/** Runs SQL as a person would who pastes it, and answers the rows of its last statement. */
export async function execute(url: string, text: string): Promise<Record<string, unknown>[]> {
  const client = new pg.Client({ connectionString: url, application_name: 'test-person' });
  client.on('error', () => undefined);
  await client.connect();
  try {
    const results = await client.query(text);
    return [results].flat().at(-1)?.rows ?? [];
  } finally {
    await client.end();
  }
}

export const userIn = (url: string) => decodeURIComponent(new URL(url).username);
