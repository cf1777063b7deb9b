import { execFileSync, fork, spawnSync } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  readdirSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import net from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { afterEach, describe, expect, test } from '@jest/globals';
import pg from 'pg';
import { type Postgres, type PostgresOptions, startPostgres, waitForPostgres } from '../../stack/postgres.ts';
import { isRunning } from '../../stack/process.ts';
import { cacheDir, makeDataDir } from '../support/data-dir.ts';
import { killNow, messageOf, run } from './programs/run.ts';

const running = new Set<Postgres>();

async function start(options: Partial<PostgresOptions> & { dataDir: string }): Promise<Postgres> {
  const postgres = await startPostgres({ cacheDir, port: 0, ...options });
  running.add(postgres);
  return postgres;
}

afterEach(async () => {
  for (const postgres of running) await postgres.stop();
  running.clear();
});

async function query(url: string, sql: string): Promise<unknown[][]> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    return (await client.query({ text: sql, rowMode: 'array' })).rows;
  } finally {
    await client.end();
  }
}

describe('the embedded Postgres', () => {
  test('is durable, listens on loopback only, wants its password, and keeps data over a stop', async () => {
    const dataDir = makeDataDir();
    const first = await start({ dataDir });
    await query(first.url, 'create table kept as select generate_series(1, 10) as n');
    const settings = await query(
      first.url,
      `select name, setting from pg_settings where name in
         ('fsync', 'synchronous_commit', 'full_page_writes', 'data_checksums', 'listen_addresses',
          'unix_socket_directories', 'server_encoding', 'TimeZone') order by name`,
    );
    expect(Object.fromEntries(settings)).toEqual({
      TimeZone: 'UTC',
      data_checksums: 'on',
      fsync: 'on',
      full_page_writes: 'on',
      listen_addresses: '127.0.0.1',
      server_encoding: 'UTF8',
      synchronous_commit: 'on',
      unix_socket_directories: '',
    });
    const withoutPassword = new URL(first.url);
    withoutPassword.password = 'wrong';
    await expect(query(withoutPassword.href, 'select 1')).rejects.toMatchObject({ code: '28P01' });
    expect(statSync(path.join(dataDir, 'postgres', 'sluice-password')).mode & 0o777).toBe(0o600);

    await first.stop();
    expect(await first.exited).toEqual({ code: 0, signal: null });
    expect(isRunning(first.pid)).toBe(false);
    const second = await start({ dataDir, memoryMb: 1024 });
    expect(await query(second.url, 'select count(*)::int from kept')).toEqual([[10]]);
    expect(await query(second.url, 'show shared_buffers')).toEqual([['256MB']]);
  });

  test('recovers after kill -9, with everything that was committed', async () => {
    const dataDir = makeDataDir();
    const first = await start({ dataDir });
    await query(first.url, 'create table kept (n integer)');
    for (let n = 1; n <= 20; n += 1) await query(first.url, `insert into kept values (${n})`);
    process.kill(first.pid, 'SIGKILL');
    expect(await first.exited).toEqual({ code: null, signal: 'SIGKILL' });
    const second = await start({ dataDir });
    expect(await query(second.url, 'select count(*)::int from kept')).toEqual([[20]]);
  });

  test('is waited for while it is too busy to answer, and not while it refuses', async () => {
    const { url, port } = await start({ dataDir: makeDataDir() });
    let asked = 0;
    const busy = net.createServer((socket) => {
      asked += 1;
      socket.on('error', () => undefined);
      // The first one gets no answer, and the next one an answer that breaks off.
      if (asked === 2) socket.destroy();
      if (asked < 3) return;
      const real = net.connect(port, '127.0.0.1');
      real.on('error', () => socket.destroy());
      socket.pipe(real).pipe(socket);
    });
    await new Promise<void>((resolve) => void busy.listen(0, '127.0.0.1', resolve));
    const at = new URL(url);
    at.port = String((busy.address() as net.AddressInfo).port);
    const lines: string[] = [];
    const waiting = {
      service: { exited: new Promise<never>(() => {}) },
      report: (line: string) => void lines.push(line),
      lastWords: () => '',
      signal: undefined,
    };
    try {
      await waitForPostgres({ ...waiting, url: at.href });
      expect(asked).toBe(3);
      expect(lines).toContain('  waiting for Postgres (it does not answer yet) …');
      at.password = 'wrong';
      await expect(waitForPostgres({ ...waiting, url: at.href })).rejects.toThrow('does not accept Sluice');
    } finally {
      busy.close();
    }
  });

  test('starts although its old process number belongs to another program now', async () => {
    const dataDir = makeDataDir();
    const first = await start({ dataDir });
    const pidFile = path.join(dataDir, 'postgres', 'postmaster.pid');
    const content = await readFile(pidFile, 'utf8');
    await first.stop();
    await writeFile(pidFile, content.replace(/^\d+/, String(process.pid)));
    const second = await start({ dataDir });
    expect(await query(second.url, 'select 1')).toEqual([[1]]);
  });

  test('stops the server of a killed supervisor and takes its place', async () => {
    const dataDir = makeDataDir();
    const supervisor = run('start-postgres.ts', dataDir, cacheDir);
    const orphan = await messageOf<{ pid: number; url: string }>(supervisor);
    await query(orphan.url, 'create table kept as select 1 as n');
    await killNow(supervisor);
    expect(isRunning(orphan.pid)).toBe(true);
    const lines: string[] = [];
    const postgres = await start({ dataDir, report: (line) => lines.push(line) });
    expect(isRunning(orphan.pid)).toBe(false);
    expect(lines.join()).toContain(`process ${orphan.pid}`);
    expect(await query(postgres.url, 'select n from kept')).toEqual([[1]]);
  });

  test('starts over when the first start was killed while it made the database', async () => {
    const dataDir = makeDataDir();
    const supervisor = run('start-postgres.ts', dataDir, cacheDir);
    const partial = () => readdirSync(dataDir).find((name) => name.startsWith('postgres.partial-'));
    while (!existsSync(path.join(dataDir, partial() ?? 'none', 'global'))) await pause(2);
    await killNow(supervisor);
    expect(existsSync(path.join(dataDir, 'postgres'))).toBe(false);
    const postgres = await start({ dataDir });
    expect(await query(postgres.url, 'select 1')).toEqual([[1]]);
    expect(partial()).toBeUndefined();
  });

  test('names the port that another program has', async () => {
    const other = net.createServer().listen(0, '127.0.0.1');
    await new Promise((resolve) => other.once('listening', resolve));
    const { port } = other.address() as net.AddressInfo;
    await expect(start({ dataDir: makeDataDir(), port })).rejects.toThrow(
      `Port ${port} (SLUICE_POSTGRES_PORT) is in use by another program; free it or set SLUICE_POSTGRES_PORT to another one.`,
    );
    other.close();
  });

  test('refuses a database of another major version, and a directory that is none', async () => {
    const dataDir = makeDataDir();
    mkdirSync(path.join(dataDir, 'postgres'));
    await expect(start({ dataDir })).rejects.toThrow(
      /is not a Postgres database \(it has no PG_VERSION file\)/,
    );
    writeFileSync(path.join(dataDir, 'postgres', 'PG_VERSION'), '17\n');
    await expect(start({ dataDir })).rejects.toThrow(
      /was created by Postgres 17, but this version of Sluice contains Postgres 18/,
    );
  });

  test('refuses a data directory that cannot be made', async () => {
    const file = path.join(makeDataDir(), 'file');
    writeFileSync(file, '');
    await expect(start({ dataDir: path.join(file, 'data') })).rejects.toThrow(
      /cannot be written \(ENOTDIR\); make it writable for this user or set SLUICE_DATA_DIR to another one/,
    );
  });

  test('two first starts at once share one copy of the binaries', async () => {
    const cache = path.join(makeDataDir(), 'cache');
    const [one, other] = await Promise.all([
      start({ dataDir: makeDataDir(), cacheDir: cache }),
      start({ dataDir: makeDataDir(), cacheDir: cache }),
    ]);
    expect(await query(one.url, 'select 1')).toEqual([[1]]);
    expect(await query(other.url, 'select 1')).toEqual([[1]]);
    expect(readdirSync(cache)).toEqual([expect.stringMatching(/^postgres-18\.[\w.-]+$/)]);
  });
});

const START_POSTGRES = path.join(import.meta.dirname, 'programs', 'start-postgres.ts');

function canReadSources(uid: number): boolean {
  return spawnSync('test', ['-r', START_POSTGRES], { uid, gid: uid }).status === 0;
}

const asRoot = process.getuid?.() === 0 && process.platform === 'linux' ? describe : describe.skip;

asRoot('as root on Linux (skipped for other users: they can neither change accounts nor mount)', () => {
  test('without user namespaces: runs as another account, which then stays the owner', async () => {
    const folder = await mkdtemp(path.join(tmpdir(), 'sluice-test-account-'));
    chmodSync(folder, 0o755);
    const options = { dataDir: path.join(folder, 'a b'), cacheDir: path.join(folder, 'cache') };
    try {
      const first = await start({ ...options, withoutNamespace: true });
      expect(statSync(path.join(options.dataDir, 'postgres')).uid).not.toBe(0);
      await query(first.url, 'create table kept as select 1 as n');
      await first.stop();
      const second = await start(options);
      expect(await query(second.url, 'select n from kept')).toEqual([[1]]);
      await second.stop();
    } finally {
      await rm(folder, { recursive: true });
    }
  });

  const asNobody = canReadSources(65534) ? test : test.skip;
  asNobody('as an ordinary user (skipped where the sources lie in a directory of root alone)', async () => {
    const folder = await mkdtemp(path.join(tmpdir(), 'sluice-test-account-'));
    const dataDir = path.join(folder, 'a b');
    chownSync(folder, 65534, 65534);
    try {
      const owner = fork(START_POSTGRES, [dataDir, path.join(folder, 'cache')], {
        execArgv: [],
        uid: 65534,
        gid: 65534,
      });
      const { pid, url } = await messageOf<{ pid: number; url: string }>(owner);
      expect(statSync(`/proc/${pid}`).uid).toBe(65534);
      await query(url, 'create table kept as select 1 as n');
      await killNow(owner);
      // Root finds it, stops what is left of it, and leaves it to its owner.
      const postgres = await start({ dataDir });
      expect(isRunning(pid)).toBe(false);
      expect(statSync(`/proc/${postgres.pid}`).uid).toBe(65534);
      expect(await query(postgres.url, 'select n from kept')).toEqual([[1]]);
      await postgres.stop();
    } finally {
      await rm(folder, { recursive: true });
    }
  });

  test('without user namespaces, below a directory that only root may enter: says what to do', async () => {
    await expect(start({ dataDir: makeDataDir(), withoutNamespace: true })).rejects.toThrow(
      /Postgres refuses to run as root.*start Sluice as an ordinary user, set SLUICE_DATA_DIR.*or set DATABASE_URL/,
    );
  });

  test('names a disk with too little space, and a full one', async () => {
    const mount = makeDataDir();
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=8m', 'tmpfs', mount]);
    try {
      await expect(start({ dataDir: mount })).rejects.toThrow(
        /\(SLUICE_DATA_DIR\) has 8 MB left, but Sluice needs at least 300 MB; free some space/,
      );
      expect(() => writeFileSync(path.join(mount, 'filler'), Buffer.alloc(16 << 20))).toThrow('ENOSPC');
      await expect(start({ dataDir: mount })).rejects.toThrow(
        /\(SLUICE_DATA_DIR\) is full; free at least 300 MB/,
      );
    } finally {
      execFileSync('umount', [mount]);
      rmSync(mount, { recursive: true });
    }
  });

  test('names a disk that is mounted read-only', async () => {
    const mount = makeDataDir();
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=8m,ro', 'tmpfs', mount]);
    try {
      await expect(start({ dataDir: mount })).rejects.toThrow(
        /cannot be written \(EROFS\); make it writable/,
      );
    } finally {
      execFileSync('umount', [mount]);
    }
  });
});
