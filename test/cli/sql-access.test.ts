// The life of a login: given, renewed, taken away, gone with its project, and not there after a restore.
import { rmSync } from 'node:fs';
import path from 'node:path';
import { afterAll, describe, expect, test } from '@jest/globals';
import pg from 'pg';
import { backUp } from '../../backup/backup.ts';
import { restore } from '../../backup/restore.ts';
import { createPool, transaction } from '../../db/pool.ts';
import { setUpDatabase } from '../../db/wait.ts';
import { removeProject } from '../../tenancy/deletion.ts';
import {
  execute,
  insertProjects,
  insertTwoProjects,
  MINE,
  THEIRS,
  userIn,
  withEmptyDatabase,
} from '../db/roles/world.ts';
import { type CommandResult, sluice } from '../support/cli.ts';
import { makeDataDir } from '../support/data-dir.ts';
import { eventually } from '../support/eventually.ts';

const dataDir = makeDataDir();
afterAll(() => rmSync(dataDir, { recursive: true }));

type Run = (...args: string[]) => Promise<CommandResult>;

interface Installation {
  /** With the user whom the commands use. */
  url: string;
  admin: string;
  run: Run;
}

/** Runs work with an installation of two projects, whose commands use a user with these attributes. */
async function installed(
  attributes: string,
  work: (installation: Installation) => Promise<void>,
): Promise<void> {
  await withEmptyDatabase({ attributes }, async ({ url, admin }) => {
    await setUpDatabase({ url });
    const pool = createPool({ url: admin, size: 1, name: 'test' });
    await insertProjects(pool);
    await insertTwoProjects(pool);
    await pool.end();
    const run: Run = (...args) => sluice(args, { DATABASE_URL: url, SLUICE_DATA_DIR: dataDir });
    await work({ url, admin, run });
  });
}

const grant = async (run: Run, project: number, ...more: string[]): Promise<string> => {
  const { code, stdout, stderr } = await run('sql-access', 'grant', String(project), ...more);
  expect({ code, stderr }).toEqual({ code: 0, stderr: expect.stringContaining('Store it now') });
  return stdout.trim();
};

const words = async (url: string) =>
  (await execute(url, `select distinct properties ->> 'word' as word from events`)).map((row) => row.word);

const rolesOf = async (admin: string, url: string) =>
  execute(admin, `select rolname from pg_roles where rolname = '${userIn(url)}'`);

/** A session of a person, which stays. */
async function session(
  url: string,
): Promise<{ isOver: Promise<void>; query: pg.Client['query']; end: () => Promise<void> }> {
  const client = new pg.Client({ connectionString: url, application_name: 'test-person' });
  const isOver = new Promise<void>((resolve) => {
    client.on('error', () => resolve());
    client.on('end', () => resolve());
  });
  await client.connect();
  return { isOver, query: client.query.bind(client), end: () => client.end().catch(() => undefined) };
}

describe('with a superuser', () => {
  test('a login is given, renewed and taken away', async () => {
    await installed('superuser', async ({ run, admin }) => {
      const first = await run('sql-access', 'grant', String(MINE));
      const url = first.stdout.trim();
      const { hostname, port, pathname, password } = new URL(url);
      expect(first).toEqual({
        code: 0,
        stdout: `${url}\n`,
        stderr:
          `The login ${userIn(url)} of project ${MINE}. Store it now, Sluice cannot show it again:\n` +
          `  Host: ${hostname}  Port: ${port}  Database: ${pathname.slice(1)}\n` +
          `  User: ${userIn(url)}  Password: ${password}\n`,
      });
      expect(await words(url)).toEqual(['open']);
      const other = await grant(run, THEIRS, '--connections', '1');
      expect(await words(other)).toEqual(['secret']);
      expect((await run('sql-access', 'list')).stdout).toBe(
        `${MINE}  project ${MINE}  ${userIn(url)}  5 connections at most\n` +
          `${THEIRS}  project ${THEIRS}  ${userIn(other)}  1 connections at most\n`,
      );

      // The password is nowhere, and the activity log tells who did what.
      const everything = JSON.stringify(
        await execute(admin, 'select * from sql_logins l, activity_log a, pg_authid r'),
      );
      expect(everything).not.toContain(password);

      const open = await session(url);
      // The person changes the password, and sits on a lock of their own role.
      await open.query(`begin read write; alter role ${userIn(url)} password 'mine'`);
      const again = await grant(run, MINE);
      await open.isOver;
      expect(userIn(again)).toBe(userIn(url));
      await expect(words(url)).rejects.toThrow('password authentication failed');
      expect(await words(again)).toEqual(['open']);

      const last = await session(again);
      await last.query(`begin read write; alter role ${userIn(url)} set work_mem = '1MB'`);
      expect(await run('sql-access', 'revoke', String(MINE))).toMatchObject({
        code: 0,
        stdout: `Revoked the SQL access of project ${MINE}.\n`,
      });
      await last.isOver;
      await expect(words(again)).rejects.toThrow('password authentication failed');
      expect(await rolesOf(admin, url)).toEqual([]);
      expect(await words(other)).toEqual(['secret']);
      const log = await execute(
        admin,
        `select actor, activity, project_id, item_id from activity_log where scope = 'SqlAccess' order by at, id`,
      );
      const entry = { actor: 'operator', project_id: MINE, item_id: userIn(url) };
      expect(log).toEqual([
        { ...entry, activity: 'created' },
        { ...entry, activity: 'created', project_id: THEIRS, item_id: userIn(other) },
        { ...entry, activity: 'rolled' },
        { ...entry, activity: 'deleted' },
      ]);
      await run('sql-access', 'revoke', String(THEIRS));
    });
  });

  test('says what is wrong', async () => {
    await installed('superuser', async ({ run }) => {
      const wrong: [string[], string][] = [
        [['grant', 'x'], '"x" is not the id of a project.'],
        [['grant', '4711'], 'There is no project with the id 4711.'],
        [['grant', '1', '--connections', '0'], 'A login has 1 to 50 connections.'],
        [['grant', '1', '--connections', 'many'], 'A login has 1 to 50 connections.'],
        [['revoke', '1'], 'Project 1 has no login.'],
      ];
      for (const [args, message] of wrong) {
        expect(await run('sql-access', ...args)).toEqual({
          code: 1,
          stdout: '',
          stderr: `error: ${message}\n`,
        });
      }
      expect(await run('sql-access', 'list')).toEqual({ code: 0, stdout: '', stderr: '' });
    });
  });

  test('a login sees nothing from the moment that its project is deleted, and goes with the next start', async () => {
    await installed('superuser', async ({ run, url, admin }) => {
      const login = await grant(run, MINE);
      const open = await session(login);
      const count = async () => (await open.query('select count(*)::int as count from events')).rows[0].count;
      expect(await count()).toBe(3);
      const pool = createPool({ url: admin, size: 1, name: 'test' });
      const [project] = await execute(admin, `select organization_id from projects where id = ${MINE}`);
      await transaction(pool, (client) =>
        removeProject(client, MINE, (project as { organization_id: string }).organization_id, []),
      );
      expect(await count()).toBe(0);
      const [row] = await execute(admin, 'select count(*)::int as count from events where project_id = 1');
      expect(row).toEqual({ count: 3 });
      await setUpDatabase({ url });
      await open.isOver;
      expect(await rolesOf(admin, login)).toEqual([]);
      expect(await execute(admin, 'select * from sql_logins')).toEqual([]);
      await pool.end();
    });
  });

  test('a restored database has no logins, says so, and takes new ones', async () => {
    const directory = path.join(dataDir, 'copy');
    let old = '';
    let oldAdmin = '';
    await installed('superuser', async ({ run, url, admin }) => {
      old = await grant(run, MINE);
      await backUp({ url, directory, sealed: [], report: () => undefined });
      await withEmptyDatabase({ attributes: 'superuser' }, async (restored) => {
        oldAdmin = restored.admin;
        await restore({ url: restored.url, directory, encryptionKeyIds: [], report: () => undefined });
        await setUpDatabase({ url: restored.url });
        const again: Run = (...args) =>
          sluice(args, { DATABASE_URL: restored.url, SLUICE_DATA_DIR: dataDir });
        expect((await again('sql-access', 'list')).stdout).toBe(
          `${MINE}  project ${MINE}  ${userIn(old)}  no login: this database is restored or a copy; grant it again\n`,
        );
        // The login of the first database is a role of the same server, and has no business here.
        const here = new URL(old);
        here.pathname = new URL(restored.url).pathname;
        await expect(words(here.href)).rejects.toThrow(/does not exist|permission denied/);
        const login = await grant(again, MINE);
        expect(userIn(login)).not.toBe(userIn(old));
        expect(await words(login)).toEqual(['open']);
        await expect(words(here.href)).rejects.toThrow(/does not exist|permission denied/);
        expect((await again('sql-access', 'list')).stdout).toContain(
          `${userIn(login)}  5 connections at most`,
        );
        await again('sql-access', 'revoke', String(MINE));
      });
      expect(await words(old)).toEqual(['open']);
      await execute(admin, `drop owned by ${userIn(old)}; drop role ${userIn(old)}`);
    });
    expect(oldAdmin).not.toBe('');
  });

  test('a copy of a database shows the logins of the first one nothing', async () => {
    await installed('superuser', async ({ run, url, admin }) => {
      const login = await grant(run, MINE);
      const name = new URL(url).pathname.slice(1);
      const server = new URL(admin);
      server.pathname = '/postgres';
      await eventually(async () =>
        execute(server.href, `create database ${name}_copy template ${name}`).then(
          () => true,
          () => false,
        ),
      );
      const there = new URL(login);
      there.pathname = `/${name}_copy`;
      // Its rights were copied, the row that names its project does not count.
      expect(await words(there.href)).toEqual([]);
      expect(await words(login)).toEqual(['open']);
      await execute(server.href, `drop database ${name}_copy with (force)`);
      await run('sql-access', 'revoke', String(MINE));
    });
  });
});

describe('without a superuser', () => {
  test('a user who may create roles gives logins once a superuser has closed the functions', async () => {
    await installed('createrole', async ({ run, admin }) => {
      const refused = await run('sql-access', 'grant', String(MINE));
      expect(refused).toMatchObject({ code: 1, stdout: '' });
      expect(refused.stderr).toContain('A login could call functions with which it stops capture');
      const [, sql] = /(-- Run this as a superuser.*?commit;\n)/s.exec(refused.stderr) as unknown as [
        string,
        string,
      ];
      const early = await grant(run, MINE, '--despite-functions');
      expect(await words(early)).toEqual(['open']);
      expect((await execute(early, 'select pg_try_advisory_lock(1) as mine'))[0]).toEqual({ mine: true });
      await execute(admin, sql);
      const login = await grant(run, MINE);
      await expect(execute(login, 'select pg_try_advisory_lock(1)')).rejects.toThrow('permission denied');
      expect(await words(login)).toEqual(['open']);
      const [set] = await execute(login, `select current_setting('statement_timeout') as time`);
      expect(set).toEqual({ time: '5min' });
      expect(await run('sql-access', 'revoke', String(MINE))).toMatchObject({ code: 0 });
      expect(await rolesOf(admin, login)).toEqual([]);
    });
  });

  test('a user who may not create roles hears what to run', async () => {
    await withEmptyDatabase({}, async ({ url, admin }) => {
      const run: Run = (...args) => sluice(args, { DATABASE_URL: url, SLUICE_DATA_DIR: dataDir });
      const before = await setUpDatabase({ url });
      const pool = createPool({ url: admin, size: 1, name: 'test' });
      await insertProjects(pool);
      await insertTwoProjects(pool);
      await pool.end();
      const off = await run('sql-access', 'grant', String(MINE));
      expect(off.stderr).toContain('The second wall is off');
      await execute(admin, before.wall.sql);
      const refused = await run('sql-access', 'grant', String(MINE));
      expect(refused).toMatchObject({ code: 1, stdout: '' });
      const [, sql] = /and then this command again: (.*;)/.exec(refused.stderr) as unknown as [
        string,
        string,
      ];
      expect(sql).toBe(`alter role ${userIn(url)} createrole;`);
      await execute(admin, sql);
      const login = await grant(run, MINE);
      expect(await words(login)).toEqual(['open']);
      expect(await run('sql-access', 'revoke', String(MINE))).toMatchObject({ code: 0 });
    });
  });
});

test('doctor says whether the logins are there, and whether what keeps them stands', async () => {
  await installed('createrole', async ({ admin, run }) => {
    const said = async () => {
      const { stdout } = await run('doctor', '--json');
      const { findings } = JSON.parse(stdout) as {
        findings: { check: string; ok: boolean; sentence: string }[];
      };
      const found = findings.find(({ check }) => check === 'SQL logins');
      return found && { ok: found.ok, sentence: found.sentence };
    };
    // Nobody wants one.
    expect(await said()).toBeUndefined();
    const address = await grant(run, MINE, '--despite-functions');
    expect(await said()).toEqual({
      ok: true,
      sentence: '1 project has a login for SQL clients, and the policies let each see its project only.',
    });
    await execute(admin, 'drop policy of_login on events');
    expect(await said()).toEqual({
      ok: false,
      sentence: expect.stringMatching(/\ncreate policy of_login on public.events/),
    });
    await grant(run, MINE, '--despite-functions');
    await execute(admin, 'create policy mine on persons using (true)');
    expect(await said()).toEqual({
      ok: false,
      sentence: expect.stringMatching(/policy mine on public.persons is for everybody/),
    });
    await execute(admin, 'drop policy mine on persons');
    const role = userIn(await grant(run, MINE, '--despite-functions'));
    expect(role).toBe(userIn(address));
    await execute(admin, `drop owned by ${role}; drop role ${role}`);
    expect(await said()).toEqual({
      ok: false,
      sentence: expect.stringContaining(`Postgres has no role ${role} of project ${MINE}.`),
    });
    await run('sql-access', 'revoke', String(MINE));
    expect(await said()).toBeUndefined();
  });
});
