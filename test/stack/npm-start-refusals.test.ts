import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import net from 'node:net';
import path from 'node:path';
import { afterEach, describe, expect, test } from '@jest/globals';
import pg from 'pg';
import { makeDataDir } from '../support/data-dir.ts';
import { processesOf, READY, type SluiceProcess, settingsFor, startSluice } from '../support/sluice.ts';

const running = new Set<SluiceProcess>();

function start(settings: Record<string, string>): SluiceProcess {
  const sluice = startSluice(settings);
  running.add(sluice);
  return sluice;
}

afterEach(async () => {
  for (const sluice of running) await sluice.end('SIGTERM');
  running.clear();
});

async function busyPort(): Promise<net.Server & { port: number }> {
  const server = net.createServer().listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  return Object.assign(server, { port: (server.address() as net.AddressInfo).port });
}

describe('npm start refuses with one sentence', () => {
  test.each([
    'PORT',
    'SLUICE_POSTGRES_PORT',
    'SLUICE_TEMPORAL_PORT',
    'SLUICE_TEMPORAL_UI_PORT',
    'SLUICE_METRICS_PORT',
  ])('a %s that is in use', async (setting) => {
    const other = await busyPort();
    const dataDir = makeDataDir();
    const sluice = start({ ...(await settingsFor(dataDir)), [setting]: String(other.port) });
    await sluice.until(
      `Port ${other.port} (${setting}) is in use by another program; free it or set ${setting} to another one.`,
    );
    expect(await sluice.end('SIGTERM')).toBe(1);
    expect(processesOf(dataDir)).toEqual([]);
    other.close();
  });

  test('two settings with the same port', async () => {
    const settings = await settingsFor(makeDataDir());
    const sluice = start({ ...settings, PORT: settings.SLUICE_TEMPORAL_PORT as string });
    await sluice.until(
      `Both PORT and SLUICE_TEMPORAL_PORT are set to port ${settings.SLUICE_TEMPORAL_PORT}; set one of them`,
    );
    expect(await sluice.end('SIGTERM')).toBe(1);
  });

  test('a setting that does not exist', async () => {
    const sluice = start({ ...(await settingsFor(makeDataDir())), SLUICE_DATADIR: 'x' });
    await sluice.until('SLUICE_DATADIR: no such setting; did you mean SLUICE_DATA_DIR?');
    expect(await sluice.end('SIGTERM')).toBe(1);
  });

  test('a data directory that cannot be written', async () => {
    const file = path.join(makeDataDir(), 'file');
    writeFileSync(file, '');
    const sluice = start(await settingsFor(path.join(file, 'data')));
    await sluice.until('(SLUICE_DATA_DIR) cannot be written (ENOTDIR)');
    expect(await sluice.end('SIGTERM')).toBe(1);
  });

  test('a DATABASE_URL where nothing answers', async () => {
    const settings = await settingsFor(makeDataDir());
    const database = `postgres://u:hidden@127.0.0.1:${settings.SLUICE_POSTGRES_PORT}/x`;
    const sluice = start({ ...settings, DATABASE_URL: database });
    await sluice.until('(DATABASE_URL) cannot be used');
    expect(await sluice.end('SIGTERM')).toBe(1);
    expect(sluice.output()).not.toContain('hidden');
  });

  test('a database that is newer than this Sluice', async () => {
    const dataDir = makeDataDir();
    const settings = await settingsFor(dataDir);
    const first = start(settings);
    await first.until(READY);
    const postmaster = path.join(dataDir, 'postgres');
    const password = readFileSync(path.join(postmaster, 'sluice-password'), 'utf8').trim();
    const client = new pg.Client({
      connectionString: `postgres://postgres:${password}@127.0.0.1:${settings.SLUICE_POSTGRES_PORT}/sluice`,
    });
    await client.connect();
    await client.query(`insert into migrations (id, name, hash) values (9999, 'of-the-future', 'x')`);
    await client.end();
    await first.end('SIGTERM');
    const second = start(settings);
    await second.until('The database is newer than this Sluice');
    expect(await second.end('SIGTERM')).toBe(1);
    expect(processesOf(dataDir)).toEqual([]);
  });
});

test('a data directory that held something else is not touched', async () => {
  const dataDir = makeDataDir();
  mkdirSync(path.join(dataDir, 'postgres'));
  writeFileSync(path.join(dataDir, 'postgres', 'letter.txt'), 'dear');
  const sluice = start(await settingsFor(dataDir));
  await sluice.until('is not a Postgres database (it has no PG_VERSION file); move it away');
  expect(await sluice.end('SIGTERM')).toBe(1);
  expect(readFileSync(path.join(dataDir, 'postgres', 'letter.txt'), 'utf8')).toBe('dear');
});
