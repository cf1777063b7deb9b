import { execFileSync } from 'node:child_process';
import { readFileSync, statSync } from 'node:fs';
import path from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import { findRoles } from '../../db/roles/roles.ts';
import { runningDatabaseUrl } from '../../stack/borrow-postgres.ts';
import { isRunning } from '../../stack/process.ts';
import { execute } from '../db/roles/world.ts';
import { makeDataDir } from '../support/data-dir.ts';
import { databaseForFile } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import { processesOf, READY, type SluiceProcess, settingsFor, startSluice } from '../support/sluice.ts';
import { allocateNamespace } from '../support/temporal.ts';

const running = new Set<SluiceProcess>();
const measured: string[] = [];

function start(settings: Record<string, string>, command?: string[]): SluiceProcess {
  const sluice = startSluice(settings, command);
  running.add(sluice);
  return sluice;
}

/** Measured times are for people to read; nothing depends on them. */
async function measure<T>(what: string, work: Promise<T>): Promise<T> {
  const began = performance.now();
  const result = await work;
  measured.push(`${what}: ${((performance.now() - began) / 1000).toFixed(1)} s`);
  return result;
}

async function endAll(): Promise<void> {
  for (const sluice of running) await sluice.end('SIGTERM');
  running.clear();
}

afterEach(() => {
  if (measured.length > 0) process.stderr.write(`  measured: ${measured.splice(0).join(', ')}\n`);
});

interface Credentials {
  base_url: string;
  temporal_ui_url: string;
  personal_api_key: string;
  project_api_key: string;
}

const credentialsOf = (dataDir: string): Credentials =>
  JSON.parse(readFileSync(path.join(dataDir, 'credentials.json'), 'utf8'));

const recordedPid = (dataDir: string, name: string): number =>
  JSON.parse(readFileSync(path.join(dataDir, 'processes', `${name}.json`), 'utf8')).pid;

const whoAmI = async (credentials: Credentials) => {
  const response = await fetch(`${credentials.base_url}/api/users/@me/`, {
    headers: { authorization: `Bearer ${credentials.personal_api_key}` },
  });
  return { status: response.status, body: (await response.json()) as { email?: string } };
};

// The tests of one installation run in this order, because a start takes long.
describe('npm start: one installation', () => {
  let dataDir: string;
  let settings: Record<string, string>;
  let credentials: Credentials;
  let sluice: SluiceProcess;
  beforeAll(async () => {
    dataDir = makeDataDir();
    settings = await settingsFor(dataDir);
  });
  const startAgain = async (what: string, command?: string[]) => {
    sluice = start(settings, command);
    await measure(what, sluice.until(READY));
  };
  const expectSameData = async () => {
    expect(credentialsOf(dataDir)).toEqual(credentials);
    expect(await whoAmI(credentials)).toMatchObject({ status: 200, body: { email: 'admin@localhost' } });
  };

  test('the first start sets everything up', async () => {
    await startAgain('first start', ['npm', 'start']);
    credentials = credentialsOf(dataDir);
    expect(credentials).toEqual({
      base_url: `http://localhost:${settings.PORT}`,
      capture_url: `http://localhost:${settings.PORT}`,
      temporal_ui_url: `http://localhost:${settings.SLUICE_TEMPORAL_UI_PORT}`,
      personal_api_key: expect.stringMatching(/^phx_/),
      project_api_key: expect.stringMatching(/^phc_/),
      organization_id: expect.stringMatching(/^[0-9a-f-]{36}$/),
      project_id: expect.any(Number),
    });
    for (const secret of [
      'credentials.json',
      'encryption-keys',
      'logs/api.log',
      'postgres/sluice-password',
    ]) {
      expect([secret, statSync(path.join(dataDir, secret)).mode & 0o777]).toEqual([secret, 0o600]);
    }
    for (const folder of ['.', 'logs', 'processes', 'postgres', 'temporal']) {
      expect([folder, statSync(path.join(dataDir, folder)).mode & 0o777]).toEqual([folder, 0o700]);
    }
    expect(sluice.output()).toContain(`personal API key  ${credentials.personal_api_key}`);
    expect(sluice.output()).toContain(`project API key   ${credentials.project_api_key}`);
    expect((await fetch(`${credentials.base_url}/_readyz`)).status).toBe(200);
    expect((await fetch(credentials.temporal_ui_url)).status).toBe(200);
    await expectSameData();

    // The superuser made the roles. No process of Sluice works as it.
    const admin = (await runningDatabaseUrl(dataDir)) as string;
    expect((await findRoles({ url: admin })).wall).toEqual({ up: true, sql: '' });
    const users = await execute(
      admin,
      `select distinct regexp_replace(usename, '^sluice_[0-9a-f]+_', '') as user from pg_stat_activity
       where datname = current_database() and application_name ~ '^sluice-'`,
    );
    expect(users).toEqual([{ user: 'server' }]);
  });

  test('a second one on the same data directory is refused, and leaves the first alone', async () => {
    const second = start(await settingsFor(dataDir));
    await second.until('Sluice is already running with this data directory');
    expect(await second.end('SIGTERM')).toBe(1);
    const named = /already running with this data directory \(process (\d+)\)\./.exec(second.output())?.[1];
    expect(isRunning(Number(named))).toBe(true);
    expect(await whoAmI(credentials)).toMatchObject({ status: 200 });
  });

  test('stops everything, and starts again with all data', async () => {
    const processes = processesOf(dataDir);
    expect(processes).toHaveLength(4);
    await measure('stop', sluice.end('SIGTERM'));
    expect(processes.filter((pid) => isRunning(pid))).toEqual([]);
    expect(processesOf(dataDir)).toEqual([]);
    expect(sluice.output()).toMatch(
      /API stopped\n.*worker stopped\n.*Temporal stopped\n.*Postgres stopped\n/s,
    );

    await startAgain('second start');
    await expectSameData();
    // Shown once means once, and the line that reads the key works in a shell.
    expect(sluice.output()).not.toContain(credentials.personal_api_key);
    const line = /^ {2}(KEY=.*)$/m.exec(sluice.output())?.[1];
    const printed = execFileSync('sh', ['-c', `${line}; printf %s "$KEY"`], { encoding: 'utf8' });
    expect(printed).toBe(credentials.personal_api_key);
  });

  test('replaces every part that is killed', async () => {
    for (const name of ['API', 'worker', 'Temporal']) {
      process.kill(recordedPid(dataDir, name), 'SIGKILL');
      await sluice.until(`${name} ended unexpectedly by SIGKILL; starting it again …`);
      await sluice.until(`${name} is running again.`);
    }
    const postmaster = path.join(dataDir, 'postgres', 'postmaster.pid');
    process.kill(Number.parseInt(readFileSync(postmaster, 'utf8'), 10), 'SIGKILL');
    await sluice.until('Postgres is running again.');
    await eventually(async () =>
      whoAmI(credentials).then(
        ({ status }) => status === 200,
        () => false,
      ),
    );
  });

  test('recovers from kill -9 of everything, and of the supervisor alone', async () => {
    for (const pid of [sluice.child.pid as number, ...processesOf(dataDir)]) process.kill(pid, 'SIGKILL');
    await sluice.end('SIGKILL');
    await startAgain('start after kill -9 of everything');
    await expectSameData();

    const orphans = processesOf(dataDir);
    await sluice.end('SIGKILL');
    await startAgain('start after kill -9 of the supervisor');
    expect(orphans.filter((pid) => isRunning(pid))).toEqual([]);
    await expectSameData();
  });

  test('a part that hangs does not keep it from stopping, and a second ctrl-C hurries', async () => {
    const frozen = recordedPid(dataDir, 'worker');
    process.kill(frozen, 'SIGSTOP');
    expect(await measure('stop with a frozen worker', sluice.end('SIGTERM'))).toBe(0);
    expect([isRunning(frozen), processesOf(dataDir)]).toEqual([false, []]);

    await startAgain('last start');
    process.kill(recordedPid(dataDir, 'API'), 'SIGSTOP');
    process.kill(recordedPid(dataDir, 'worker'), 'SIGSTOP');
    await eventually(async () => {
      sluice.child.kill('SIGINT');
      return sluice.output().includes('Stopping at once');
    });
    expect(await measure('hurried stop with everything frozen', sluice.end('SIGINT'))).toBe(0);
    expect(processesOf(dataDir)).toEqual([]);
  });

  afterAll(endAll);
});

describe('npm start', () => {
  afterEach(endAll);

  test('uses the Postgres and the Temporal it is given, and starts none', async () => {
    const dataDir = makeDataDir();
    const temporal = allocateNamespace();
    const sluice = start({
      ...(await settingsFor(dataDir)),
      DATABASE_URL: database.url,
      TEMPORAL_ADDRESS: temporal.address,
      TEMPORAL_NAMESPACE: temporal.namespace,
      TEMPORAL_UI_URL: 'http://temporal.example/',
    });
    await sluice.until(READY);
    expect(processesOf(dataDir)).toHaveLength(2);
    const credentials = credentialsOf(dataDir);
    expect(credentials.temporal_ui_url).toBe('http://temporal.example');
    expect(await whoAmI(credentials)).toMatchObject({ status: 200 });
    expect(await sluice.end('SIGINT')).toBe(0);

    // Another machine with the same database has no keys, and must not invent any.
    const elsewhere = makeDataDir();
    const other = start({
      ...(await settingsFor(elsewhere)),
      DATABASE_URL: database.url,
      TEMPORAL_ADDRESS: temporal.address,
      TEMPORAL_NAMESPACE: temporal.namespace,
    });
    await other.until(READY);
    expect(other.output()).toContain('create one with "npx sluice key create"');
    expect(await other.end('SIGHUP')).toBe(0);
  });
  const database = databaseForFile();

  const MOMENTS = ['Creating the Postgres database', 'Preparing the database', 'Starting the API'];

  test('killed in the middle of the first start, the next start completes it', async () => {
    const dataDir = makeDataDir();
    const settings = await settingsFor(dataDir);
    for (const moment of MOMENTS) {
      const killed = start(settings);
      await killed.until(moment);
      await killed.end('SIGKILL');
    }
    const last = start(settings);
    await last.until(READY);
    expect(await whoAmI(credentialsOf(dataDir))).toMatchObject({ status: 200 });
    expect(await last.end('SIGTERM')).toBe(0);
  });

  test('stopped in the middle of the start, it leaves no process', async () => {
    for (const moment of MOMENTS) {
      const dataDir = makeDataDir();
      const sluice = start(await settingsFor(dataDir));
      await sluice.until(moment);
      const code = await sluice.end('SIGINT');
      expect([moment, code]).toEqual([moment, 0]);
      // A Postgres that had to be killed leaves its lock file behind, with the number of a process that is gone, or
      // about to be.
      await eventually(async () => !processesOf(dataDir).some((pid) => isRunning(pid)));
      expect(sluice.output()).toContain('Sluice has stopped.');
    }
  });
});
