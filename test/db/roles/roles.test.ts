// How the roles come to be: whoever the user of DATABASE_URL is, whatever was there before.
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, describe, expect, test } from '@jest/globals';
import { backUp } from '../../../backup/backup.ts';
import { restore } from '../../../backup/restore.ts';
import { createIngest } from '../../../capture/ingest.ts';
import { dropExpiredEvents, ensureEventPartitions } from '../../../db/event-partitions.ts';
import { migrate, readMigrations } from '../../../db/migrate.ts';
import { createPool, type Pool } from '../../../db/pool.ts';
import { type DatabaseRoles, ensureRoles, findRoles, RoleError } from '../../../db/roles/roles.ts';
import { setUpDatabase } from '../../../db/wait.ts';
import { OPERATOR } from '../../../tenancy/actor.ts';
import { grantSqlAccess, revokeSqlAccess } from '../../../tenancy/sql-access.ts';
import { capturedEvent } from '../../capture/support.ts';
import { withDatabase } from '../../support/database.ts';
import {
  type EmptyDatabase,
  execute,
  insertInOldTables,
  insertProjects,
  insertTwoProjects,
  MINE,
  PASSWORD,
  userIn,
  withEmptyDatabase,
} from './world.ts';

const folder = mkdtempSync(path.join(tmpdir(), 'sluice-roles-'));
afterAll(() => rmSync(folder, { recursive: true }));

async function withPool<T>(url: string, work: (pool: Pool) => Promise<T>): Promise<T> {
  const pool = createPool({ url, size: 2, name: 'test' });
  try {
    return await work(pool);
  } finally {
    await pool.end();
  }
}

/** Everything that the processes of Sluice do, with the addresses that they would use. */
async function expectToWork({ server, reader }: DatabaseRoles): Promise<void> {
  await withPool(server, async (pool) => {
    const count = async () => (await pool.query('select count(*)::int as count from events')).rows[0].count;
    const before = await count();
    await insertTwoProjects(pool);
    const ingest = createIngest({ pool });
    const event = capturedEvent({ uuid: '00000000-0000-4000-8000-0000000000e1' });
    await ingest.submit({ projectId: MINE, events: [event] });
    await ingest.close();
    expect(await count()).toBe(before + 7);
    const later = new Date(Date.now() + 30 * 7 * 86_400_000);
    expect(await ensureEventPartitions(pool, later, 0)).toBeGreaterThan(0);
    expect(await dropExpiredEvents(pool, new Date(later.getTime() + 14 * 86_400_000), 1)).toBeGreaterThan(0);
    expect(await ensureEventPartitions(pool, new Date(), 0)).toBe(1);
    await pool.query("create index further on groups (updated_at); select pg_notify('x', 'y')");
  });
  await insertAgain(server);
  const seen = await execute(
    reader,
    `begin; set local sluice.project = '${MINE}'; select project_id from persons union select project_id from sessions`,
  );
  expect(seen).toEqual([{ project_id: MINE }]);
  await expect(execute(reader, 'select * from projects')).rejects.toThrow('permission denied');
}

/** The partitions were dropped with their events. */
const insertAgain = (url: string) =>
  execute(
    url,
    `insert into events select 1, gen_random_uuid(), now(), now(), now(), false, 'e', 'd', '{}', 's', null, '', gen_random_uuid(), 'full', '{}'`,
  );

/** Who owns what Sluice made. */
const owners = async (url: string) => {
  const rows = await execute(
    url,
    `select distinct pg_get_userbyid(relowner) as name from pg_class c join pg_namespace n on n.oid = c.relnamespace
     where n.nspname in ('public', 'hq', 'sluice_sql')
     union select pg_get_userbyid(proowner) from pg_proc p join pg_namespace n on n.oid = p.pronamespace where n.nspname in ('public', 'hq', 'sluice_sql')
     union select pg_get_userbyid(nspowner) from pg_namespace where nspname in ('hq', 'sluice_sql')`,
  );
  return rows.map((row) => row.name);
};

describe('a superuser', () => {
  test('gets an owner, a server and a reader, of which none is mighty', async () => {
    await withEmptyDatabase({ attributes: 'superuser' }, async ({ url, admin }) => {
      const roles = await setUpDatabase({ url });
      expect(roles.wall).toEqual({ up: true, sql: '' });
      expect([userIn(roles.server), userIn(roles.reader)]).toEqual([
        expect.stringMatching(/^sluice_\w+_server$/),
        expect.stringMatching(/^sluice_\w+_reader$/),
      ]);
      expect(await owners(admin)).toEqual([userIn(roles.server).replace('server', 'owner')]);
      const mighty = await execute(
        admin,
        `select rolname from pg_roles where rolname ~ '^sluice_' and (rolsuper or rolcreaterole or rolcreatedb or rolbypassrls or rolreplication)`,
      );
      expect(mighty).toEqual([]);
      await expectToWork(roles);
      // What the server made belongs to the owner, too.
      expect(await owners(admin)).toEqual([userIn(roles.server).replace('server', 'owner')]);
      // The next start finds everything, and other statements of the first user go on.
      expect(await ensureRoles({ url })).toEqual(roles);
      expect(await findRoles({ url })).toEqual(roles);
    });
  });

  test('any number of processes at once', async () => {
    await withEmptyDatabase({ attributes: 'superuser' }, async ({ url }) => {
      const found = await Promise.all(Array.from({ length: 8 }, () => setUpDatabase({ url })));
      expect(found).toEqual(Array(8).fill(found[0]));
      expect(found[0]?.wall).toEqual({ up: true, sql: '' });
    });
  });

  test('clones of a database share its roles, and start side by side', async () => {
    await withDatabase(({ url: one }) =>
      withDatabase(async ({ url: other }) => {
        const found = await Promise.all([one, other, one, other].map((url) => ensureRoles({ url })));
        expect(found.map(({ wall }) => wall)).toEqual(Array(4).fill({ up: true, sql: '' }));
        expect(new Set(found.map(({ reader }) => userIn(reader))).size).toBe(1);
      }),
    );
  });

  test('puts right what somebody changed: passwords, rights, powers, the owner', async () => {
    await withEmptyDatabase({ attributes: 'superuser' }, async ({ url, admin }) => {
      const roles = await setUpDatabase({ url });
      const [server, reader] = [userIn(roles.server), userIn(roles.reader)];
      await execute(
        admin,
        `alter role ${reader} password 'other'; alter role ${server} nologin; alter role ${reader} bypassrls;
         grant select on projects to ${reader}; grant insert on events to public; grant pg_read_all_data to ${reader};
         grant execute on function set_config(text, text, boolean) to ${reader};
         alter table persons owner to ${userIn(url)}; revoke select on groups from ${reader};
         create table events_by_hand partition of events for values from ('2001-01-01') to ('2001-01-08');
         grant select on events_by_hand to public; create view mine as select * from projects; grant select on mine to public`,
      );
      const found = await findRoles({ url });
      expect(found).toMatchObject({ server: url, reader: url, wall: { up: false } });
      expect(await ensureRoles({ url })).toEqual(roles);
      await expectToWork(roles);
      for (const name of ['projects', 'events_by_hand', 'mine'])
        await expect(execute(roles.reader, `select * from ${name}`)).rejects.toThrow('permission denied');
      await expect(execute(roles.reader, "select set_config('a.b', 'c', true)")).rejects.toThrow(
        'permission denied',
      );
    });
  });
});

/** Takes care that nobody has to read SQL for a wall that is up. */
const isUp = ({ wall }: DatabaseRoles) => wall.up;

describe('a user who may create roles', () => {
  test('makes them, and tells what only a superuser can do', async () => {
    await withEmptyDatabase({ attributes: 'createrole' }, async ({ url, admin }) => {
      const roles = await setUpDatabase({ url });
      expect(isUp(roles)).toBe(true);
      expect(roles.wall.sql).toContain('Run this as a superuser');
      expect(await owners(admin)).toEqual([userIn(roles.server).replace('server', 'owner')]);
      await expectToWork(roles);
      // Statements of the user go on: those of the command line, for example.
      await insertAgain(url);
      await migrate(url);
      await execute(admin, roles.wall.sql);
      expect(await ensureRoles({ url })).toEqual({ ...roles, wall: { up: true, sql: '' } });
      await expect(execute(roles.reader, "select set_config('a.b', 'c', true)")).rejects.toThrow(
        'permission denied',
      );
      await insertAgain(roles.server);
    });
  });
});

describe('a user who may not create roles', () => {
  /** Sets the database up, sees the wall off, and pastes the SQL. */
  async function putUp({ url, admin }: EmptyDatabase): Promise<DatabaseRoles> {
    const before = await setUpDatabase({ url });
    expect(before).toMatchObject({ server: url, reader: url });
    expect(before.wall).toEqual({
      up: false,
      reason: expect.stringContaining('permission denied to create role'),
      sql: expect.stringContaining('Run this as a superuser in the database'),
    });
    expect(await findRoles({ url })).toMatchObject({
      wall: { up: false, sql: expect.stringContaining('create role') },
    });
    // Nobody learns a password from the SQL, from a log of it, or from the log of Postgres.
    const [row] = await execute(url, 'select * from database_roles');
    expect(before.wall.sql).not.toContain(row?.reader_password);
    expect(before.wall.sql).not.toContain(row?.server_password);
    await insertAgain(url);
    await execute(admin, before.wall.sql);
    return ensureRoles({ url });
  }

  test('starts all the same; the SQL that it shows puts the wall up', async () => {
    await withEmptyDatabase({}, async (database) => {
      const roles = await putUp(database);
      expect(roles.wall).toEqual({ up: true, sql: '' });
      expect(await owners(database.admin)).toEqual([userIn(roles.server).replace('server', 'owner')]);
      await expectToWork(roles);
      await insertAgain(database.url);
      expect(await setUpDatabase({ url: database.url })).toEqual(roles);
    });
  });

  test('so does one to whom the database does not belong', async () => {
    await withEmptyDatabase({ owns: false }, async (database) => {
      const user = userIn(database.url);
      await execute(
        database.admin,
        `grant create on schema public to ${user}; grant create on database ${user} to ${user}`,
      );
      const roles = await putUp(database);
      expect(roles.wall).toEqual({ up: true, sql: '' });
      await expectToWork(roles);
    });
  });
});

describe('addresses for each role', () => {
  test('are used as they are, and the reader gets its rights', async () => {
    await withEmptyDatabase({}, async ({ url: ownerUrl, as, admin }) => {
      const owner = userIn(ownerUrl);
      await execute(
        admin,
        `create role ${owner}_s login password '${PASSWORD}'; create role ${owner}_r login password '${PASSWORD}'; grant ${owner} to ${owner}_s`,
      );
      const given = { url: as(`${owner}_s`), ownerUrl, readerUrl: as(`${owner}_r`) };
      const roles = await setUpDatabase(given);
      expect(roles).toMatchObject({ server: given.url, reader: given.readerUrl, wall: { up: true } });
      expect(await owners(admin)).toEqual([owner]);
      await expectToWork(roles);
      await execute(admin, roles.wall.sql);
      expect((await setUpDatabase(given)).wall).toEqual({ up: true, sql: '' });
      expect(await owners(admin)).toEqual([owner]);
    });
  });

  test('are those of users that the documentation makes', async () => {
    const page = readFileSync(path.join(import.meta.dirname, '../../../docs/operations.md'), 'utf8');
    const [, sql] = /```sql\n(create role sluice_admin.*?)```/s.exec(page) as unknown as [string, string];
    const name = `docs_${process.pid}`;
    const server = new URL(process.env.TEST_POSTGRES_URL as string);
    for (const statement of sql
      .replaceAll('sluice', name)
      .split(/(?<=;)\n/)
      .filter(Boolean))
      await execute(server.href, statement);
    const at = (user: string, password: string) => {
      const url = new URL(server);
      Object.assign(url, { pathname: `/${name}`, username: `${name}_${user}`, password });
      return url.href;
    };
    const given = {
      url: at('app', 'second secret'),
      ownerUrl: at('admin', 'first secret'),
      readerUrl: at('reader', 'third secret'),
    };
    const roles = await setUpDatabase(given);
    expect(roles).toMatchObject({ server: given.url, reader: given.readerUrl, wall: { up: true } });
    await expectToWork(roles);
    await execute(server.href, `drop database ${name} with (force)`);
  });

  test('an owner alone makes the reader; the server stays the user that was given', async () => {
    await withEmptyDatabase({ attributes: 'createrole' }, async ({ url: ownerUrl, as, admin }) => {
      const server = `${userIn(ownerUrl)}_s`;
      await execute(admin, `create role ${server} login password '${PASSWORD}'`);
      const roles = await setUpDatabase({ url: as(server), ownerUrl });
      expect(roles).toMatchObject({ server: as(server), wall: { up: true } });
      expect(userIn(roles.reader)).toMatch(/^sluice_/);
      await expectToWork(roles);
    });
  });

  test('a reader whom row-level security does not hold is refused', async () => {
    await withEmptyDatabase({ attributes: 'superuser' }, async ({ url, as, admin }) => {
      const { server } = await setUpDatabase({ url });
      for (const readerUrl of [admin, server]) {
        const refused = ensureRoles({ url, readerUrl });
        await expect(refused).rejects.toThrow(RoleError);
        await expect(refused).rejects.toThrow(
          `row-level security does not hold for the user ${userIn(readerUrl)}`,
        );
      }
      await expect(ensureRoles({ url, readerUrl: as('nobody_at_all') })).rejects.toThrow(
        'SLUICE_READER_DATABASE_URL cannot be used: password authentication failed for user "nobody_at_all".',
      );
    });
  });

  test('a server that would see nothing is refused, with the SQL that helps', async () => {
    await withEmptyDatabase({ attributes: 'superuser' }, async ({ url, as, admin }) => {
      await setUpDatabase({ url });
      const blind = `${userIn(url)}_b`;
      await execute(
        admin,
        `create role ${blind} login password '${PASSWORD}'; grant all on all tables in schema public to ${blind}`,
      );
      const error = await findRoles({ url: as(blind) }).catch((thrown: Error) => thrown);
      expect(error).toBeInstanceOf(RoleError);
      const { message } = error as Error;
      expect(message).toContain(`Row-level security hides all events from the user ${blind} of DATABASE_URL`);
      // A backup by such a user fails, instead of being empty.
      const directory = path.join(folder, 'blind');
      await execute(admin, `alter table database_roles owner to ${userIn(url)}`);
      await expect(
        backUp({ url: as(blind), directory, sealed: [], report: () => undefined }),
      ).rejects.toThrow('would be affected by row-level security');
      await execute(admin, /Run this as a superuser: (.*)$/.exec(message)?.[1] as string);
      expect((await findRoles({ url: as(blind) })).server).not.toBe('');
    });
  });
});

test('a database of an older version keeps its rows, and everything in it changes hands', async () => {
  await withEmptyDatabase({ attributes: 'superuser' }, async ({ url, admin }) => {
    await migrate(url, { migrations: readMigrations().slice(0, 11) });
    await withPool(url, insertInOldTables);
    const roles = await setUpDatabase({ url });
    expect(roles.wall).toEqual({ up: true, sql: '' });
    expect(await owners(admin)).toEqual([userIn(roles.server).replace('server', 'owner')]);
    expect(await execute(roles.server, 'select count(*)::int as n from events')).toEqual([{ n: 6 }]);
    expect(await execute(roles.reader, 'select count(*)::int as n from events')).toEqual([{ n: 0 }]);
    // A worker of the older version still makes partitions, as the user that it knows.
    await execute(
      url,
      "create table events_old partition of events for values from ('2001-01-01') to ('2001-01-08')",
    );
    await ensureRoles({ url });
    expect(await owners(admin)).toEqual([userIn(roles.server).replace('server', 'owner')]);
  });
});

test('a backup has no password in it, and its restored database has roles of its own', async () => {
  const directory = path.join(folder, 'backup');
  const first = await withEmptyDatabase({ attributes: 'superuser' }, async ({ url }) => {
    const roles = await setUpDatabase({ url });
    await withPool(roles.server, insertTwoProjects);
    // The server may make it, too.
    const manifest = await backUp({ url: roles.server, directory, sealed: [], report: () => undefined });
    expect(manifest.tables.map(({ name }) => name)).not.toContain('database_roles');
    expect(manifest.tables.find(({ name }) => name === 'events')?.rows).toBe(6);
    return roles;
  });
  await withEmptyDatabase({ attributes: 'superuser' }, async ({ url, admin }) => {
    await restore({ url, directory, encryptionKeyIds: [], report: () => undefined });
    const roles = await ensureRoles({ url });
    expect(roles.wall).toEqual({ up: true, sql: '' });
    expect(userIn(roles.reader)).not.toBe(userIn(first.reader));
    expect(await owners(admin)).toEqual([userIn(roles.server).replace('server', 'owner')]);
    const seen = await execute(
      roles.reader,
      `begin; set local sluice.project = '1'; select project_id from events`,
    );
    expect(seen).toEqual(Array(3).fill({ project_id: 1 }));
  });
});

describe('the policies by which a reader sees rows', () => {
  const seenBy = (reader: string) =>
    execute(reader, `begin; set local sluice.project = '${MINE}'; select distinct project_id from events`);

  test('are made again where a restored dump lacks them', async () => {
    await withEmptyDatabase({ attributes: 'superuser' }, async ({ url, admin }) => {
      const roles = await setUpDatabase({ url });
      await withPool(url, insertTwoProjects);
      await execute(admin, 'drop policy of_project on events');
      expect(await seenBy(roles.reader)).toEqual([]);
      expect(await findRoles({ url })).toMatchObject({ wall: { up: false } });
      expect(await ensureRoles({ url })).toEqual(roles);
      expect(await seenBy(roles.reader)).toEqual([{ project_id: MINE }]);
    });
  });

  test('are for every reader that is in use, also once somebody has a login', async () => {
    await withEmptyDatabase({ attributes: 'superuser' }, async ({ url, admin, as }) => {
      const roles = await setUpDatabase({ url });
      await withPool(url, async (pool) => {
        await insertProjects(pool);
        await insertTwoProjects(pool);
      });
      const given = async (name: string) => {
        await execute(admin, `create role ${name} login password '${PASSWORD}'`);
        return { url, readerUrl: as(name) };
      };
      const before = await given(`${userIn(url)}_r1`);
      await ensureRoles(before);
      // Whoever gives the login need not know by whom the processes read.
      const login = { projectId: MINE, connections: 1, despiteFunctions: false };
      await grantSqlAccess({ url }, OPERATOR, login);
      for (const reader of [roles.reader, before.readerUrl])
        expect(await seenBy(reader)).toEqual([{ project_id: MINE }]);
      const after = await given(`${userIn(url)}_r2`);
      expect((await ensureRoles(after)).wall).toEqual({ up: true, sql: '' });
      for (const reader of [roles.reader, before.readerUrl, after.readerUrl])
        expect(await seenBy(reader)).toEqual([{ project_id: MINE }]);
      await revokeSqlAccess({ url }, OPERATOR, MINE);
    });
  });

  test('are not joined by one of somebody else that would be for logins, too', async () => {
    await withEmptyDatabase({ attributes: 'superuser' }, async ({ url, admin }) => {
      await setUpDatabase({ url });
      await withPool(url, insertProjects);
      await execute(admin, 'create policy mine on persons using (true)');
      const login = { projectId: MINE, connections: 1, despiteFunctions: false };
      await expect(grantSqlAccess({ url }, OPERATOR, login)).rejects.toThrow(
        'The policy mine on public.persons is for everybody, so a login would see what it shows.',
      );
      expect(await execute(admin, 'select * from sql_logins')).toEqual([]);
    });
  });
});
