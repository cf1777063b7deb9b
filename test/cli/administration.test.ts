import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { findCredential } from '../../db/personal-api-keys.ts';
import { hashToken } from '../../tenancy/tokens.ts';
import { sluice } from '../support/cli.ts';
import { databaseForFile } from '../support/database.ts';

const database = databaseForFile();
let dataDir: string;
const run = (...args: string[]) => sluice(args, { DATABASE_URL: database.url, SLUICE_DATA_DIR: dataDir });
const credential = (value: string) => findCredential(database.pool, hashToken(value.trim()));

beforeAll(async () => {
  dataDir = await mkdtemp(path.join(tmpdir(), 'sluice-cli-'));
});
afterAll(async () => {
  await rm(dataDir, { recursive: true });
});

describe('npx sluice', () => {
  test('init sets up an empty database, once', async () => {
    const first = await run('init', '--organization', 'Acme', '--email', 'root@acme.test');
    expect(first).toMatchObject({ code: 0, stderr: '' });
    const created = JSON.parse(first.stdout);
    expect(created).toEqual({
      personal_api_key: expect.stringMatching(/^phx_/),
      project_api_key: expect.stringMatching(/^phc_/),
      organization_id: expect.any(String),
      project_id: expect.any(Number),
    });
    expect((await credential(created.personal_api_key))?.user.email).toBe('root@acme.test');

    const second = await run('init');
    expect(second.code).toBe(1);
    expect(second.stderr).toBe(
      'error: This installation already has an organization. Use `npx sluice user create` and `npx sluice key create`.\n',
    );
  });

  test('user create makes a member, and says what is wrong', async () => {
    expect(await run('user', 'create', 'bob@acme.test', '--level', 'admin')).toMatchObject({ code: 0 });
    const { rows } = await database.pool.query(
      `select u.email, m.level from organization_memberships m join users u on u.id = m.user_id order by u.id`,
    );
    expect(rows).toEqual([
      { email: 'root@acme.test', level: 15 },
      { email: 'bob@acme.test', level: 8 },
    ]);
    const wrong: [string[], string][] = [
      [['user', 'create', 'BOB@acme.test'], 'A user with the e-mail address BOB@acme.test already exists.'],
      [['user', 'create', 'nobody'], '"nobody" is not an e-mail address.'],
      [
        ['user', 'create', 'c@acme.test', '--level', 'king'],
        '--level: "king" is not a level. Use one of: member, admin',
      ],
      [
        ['user', 'create', 'c@acme.test', '--organization', 'x'],
        'There is no organization with the id or slug x.',
      ],
      [['user', 'deactivate', 'x@acme.test'], 'There is no user with the e-mail address x@acme.test.'],
    ];
    for (const [args, message] of wrong) {
      expect(await run(...args)).toEqual({ code: 1, stdout: '', stderr: `error: ${message}\n` });
    }
  });

  test('keys are created, listed, rolled and revoked; deactivating the user stops them', async () => {
    const created = await run(
      'key',
      'create',
      'bob@acme.test',
      '--scopes',
      'query:read,person:read',
      '--label',
      'Reports',
    );
    expect(created.code).toBe(0);
    const found = await credential(created.stdout);
    expect(found?.key).toMatchObject({ label: 'Reports', scopes: ['query:read', 'person:read'] });

    const listed = await run('key', 'list', 'bob@acme.test');
    expect(listed.stdout).toContain(`${found?.key.id}  phx_...`);
    expect(listed.stdout).not.toContain(created.stdout.trim());

    const rolled = await run('key', 'roll', found?.key.id as string);
    expect(await credential(created.stdout)).toBeUndefined();
    expect((await credential(rolled.stdout))?.key.id).toBe(found?.key.id);

    await run('user', 'deactivate', 'bob@acme.test');
    expect(await credential(rolled.stdout)).toBeUndefined();
    await run('user', 'activate', 'bob@acme.test');
    expect(await credential(rolled.stdout)).toBeDefined();

    expect(await run('key', 'revoke', found?.key.id as string)).toMatchObject({ code: 0 });
    expect(await credential(rolled.stdout)).toBeUndefined();
  });

  test('a key that could not be made says why', async () => {
    const wrong: [string[], RegExp][] = [
      [
        ['--scopes', 'everything'],
        /^error: --scopes: "everything" is not a scope\. A scope is \* or one of these/,
      ],
      [
        ['--scopes', '*', '--projects', '4711'],
        /^error: --projects: bob@acme\.test is not a member of all these projects\./,
      ],
      [['--scopes', '*', '--projects', 'x'], /^error: --projects: "x" is not a project id\./],
      [['--scopes', '*', '--organizations', 'x'], /^error: --organizations: "x" is not an organization id\./],
      [['--scopes', '*', '--expires', 'soon'], /^error: --expires: "soon" is not a date/],
      [['--scopes', '*', '--expires', '2020-01-01'], /^error: --expires: 2020-01-01 is in the past\./],
      [[], /required option '--scopes <list>' not specified/],
    ];
    for (const [args, message] of wrong) {
      const result = await run('key', 'create', 'bob@acme.test', ...args);
      expect(result.code).toBe(1);
      expect(result.stderr).toMatch(message);
    }
  });

  test('doctor tells what is wrong, for people and for programs', async () => {
    const sick = await sluice(['doctor', '--json'], {
      DATABASE_URL: database.url,
      SLUICE_DATA_DIR: dataDir,
      TEMPORAL_ADDRESS: process.env.TEST_TEMPORAL_ADDRESS as string,
      TEMPORAL_NAMESPACE: 'no-such-namespace',
      PORT: '1',
      SLUICE_DATABASE_POOL: '10000',
    });
    expect(sick.code).toBe(1);
    const { ok, findings } = JSON.parse(sick.stdout);
    expect(ok).toBe(false);
    const states = Object.fromEntries(
      findings.map((one: { check: string; ok: boolean }) => [one.check, one.ok]),
    );
    expect(states).toMatchObject({
      Node: true,
      Postgres: true,
      migrations: true,
      clocks: true,
      connections: false,
      organizations: true,
      Temporal: true,
      'Temporal namespace': false,
      API: false,
    });
    const dead = await sluice(['doctor'], {
      DATABASE_URL: 'postgres://u:geheim@127.0.0.1:1/x',
      SLUICE_DATA_DIR: dataDir,
      TEMPORAL_ADDRESS: '127.0.0.1:1',
      PORT: '1',
    });
    expect(dead.code).toBe(1);
    expect(dead.stdout).toContain(
      'WRONG  Postgres: Postgres (DATABASE_URL) cannot be reached: connect ECONNREFUSED 127.0.0.1:1.',
    );
    expect(dead.stdout).toContain('WRONG  Temporal: Temporal does not answer at 127.0.0.1:1');
    expect(dead.stdout).toMatch(/3 checks failed\.\n$/);
    expect(dead.stdout + dead.stderr).not.toContain('geheim');
  });

  test('doctor tells how old the copied properties of persons are', async () => {
    const asked = async () => {
      const { stdout } = await run('doctor', '--json');
      const { findings } = JSON.parse(stdout) as { findings: { check: string }[] };
      return findings.find(({ check }) => check === 'persons');
    };
    const carried = (ago: string) =>
      database.pool.query(
        `insert into person_carrying (through) values (now() - $1::interval)
         on conflict (only_row) do update set through = excluded.through`,
        [ago],
      );
    await database.pool.query('delete from person_carrying');
    expect(await asked()).toMatchObject({ ok: true, sentence: 'No event has changed a person yet.' });
    await carried('4 minutes');
    expect(await asked()).toEqual({
      check: 'persons',
      ok: true,
      sentence: 'Persons have the pages and other copied properties of the events up to 4 minutes ago.',
    });
    await carried('2 hours');
    expect(await asked()).toMatchObject({
      ok: false,
      sentence: expect.stringContaining(
        'up to 120 minutes ago. The step carryProperties of maintenance is behind',
      ),
    });
  });

  test('a wrong setting is named', async () => {
    const result = await sluice(['user', 'list'], { SLUICE_DATADIR: 'x', PORT: 'eighty' });
    expect(result.code).toBe(1);
    expect(result.stderr).toContain('SLUICE_DATADIR: no such setting; did you mean SLUICE_DATA_DIR?');
    expect(result.stderr).toContain('PORT: ');
  });
});
