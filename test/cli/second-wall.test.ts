// What an operator hears of the second wall: from the processes, their metrics and `doctor`.
import { describe, expect, test } from '@jest/globals';
import { execute, withEmptyDatabase } from '../db/roles/world.ts';
import { sluice } from '../support/cli.ts';
import { makeDataDir } from '../support/data-dir.ts';
import { databaseForFile } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import { reservePort } from '../support/ports.ts';
import { programsForFile } from '../support/programs.ts';
import { allocateNamespace } from '../support/temporal.ts';

const programs = programsForFile();
const database = databaseForFile();
const METRIC = /^sluice_second_wall\{.*\} (\d)$/m;

async function environmentOf(url: string) {
  const { address, namespace } = allocateNamespace();
  return {
    DATABASE_URL: url,
    TEMPORAL_ADDRESS: address,
    TEMPORAL_NAMESPACE: namespace,
    SLUICE_DATA_DIR: makeDataDir(),
  };
}

const metricAt = async (port: number) => {
  const response = await fetch(`http://127.0.0.1:${port}/metrics`);
  return METRIC.exec(await response.text())?.[1];
};

interface Found {
  check: string;
  ok: boolean;
  sentence: string;
}

async function wallOf(env: Record<string, string>): Promise<Found> {
  const { stdout } = await sluice(['doctor', '--json'], env);
  const { findings } = JSON.parse(stdout) as { findings: Found[] };
  return findings.find((one) => one.check === 'second wall') as Found;
}

describe('with a superuser in DATABASE_URL', () => {
  test('no process of Sluice works as the superuser, and all of them say that the wall is up', async () => {
    const env = await environmentOf(database.url);
    const ports = [await reservePort(), await reservePort()] as const;
    const api = await programs.startApi({ ...env, SLUICE_METRICS_PORT: String(ports[0]) });
    const worker = programs.start('worker/main.ts', { ...env, SLUICE_METRICS_PORT: String(ports[1]) });
    await programs.ready(api);
    await eventually(async () => worker.output().includes('the worker polls'));
    expect([await metricAt(ports[0]), await metricAt(ports[1])]).toEqual(['1', '1']);
    expect(api.output() + worker.output()).not.toContain('second wall');
    const { rows } = await database.pool.query(
      `select distinct regexp_replace(usename, '^sluice_[0-9a-f]+_', '') as user from pg_stat_activity
       where datname = current_database() and application_name ~ '^sluice-' and application_name not in ('sluice-test', 'sluice-test-reader')`,
    );
    expect(rows).toEqual([{ user: 'server' }]);
    expect(await wallOf(env)).toEqual({
      check: 'second wall',
      ok: true,
      sentence: 'What users write runs as a role that Postgres keeps within its project.',
    });
    for (const program of [api, worker]) {
      program.kill('SIGTERM');
      expect(await program.exited).toEqual({ code: 0, signal: null });
    }
  });
});

describe('with a user who may not create roles', () => {
  test('log, metric and doctor say that the wall is off; the SQL of doctor puts it up', async () => {
    await withEmptyDatabase({}, async ({ url, admin }) => {
      const env = await environmentOf(url);
      const port = await reservePort();
      const start = async () => {
        const api = await programs.startApi({ ...env, SLUICE_METRICS_PORT: String(port) });
        await programs.ready(api);
        return api;
      };
      const off = await start();
      expect(await metricAt(port)).toBe('0');
      const logged = off
        .output()
        .split('\n')
        .filter((line) => line.includes('second wall off'))
        .map((line) => JSON.parse(line));
      expect(logged).toEqual([
        expect.objectContaining({
          level: 'warn',
          msg: expect.stringContaining('second wall off: permission denied to create role'),
          sql: expect.stringContaining('create role'),
        }),
      ]);
      off.kill('SIGTERM');
      await off.exited;

      const told = await wallOf(env);
      expect(told).toMatchObject({ ok: false });
      expect(told.sentence).toMatch(/^Second wall off: .*\.\n-- Run this as a superuser/);
      await execute(admin, told.sentence.slice(told.sentence.indexOf('\n')));
      expect(await wallOf(env)).toMatchObject({ ok: true });

      const on = await start();
      expect(await metricAt(port)).toBe('1');
      expect(on.output()).not.toContain('second wall');
      on.kill('SIGTERM');
      expect(await on.exited).toEqual({ code: 0, signal: null });
    });
  });

  test('an address of a reader that cannot be used ends the start with a sentence', async () => {
    const env = await environmentOf(database.url);
    const wrong = database.url.replace(/\/\/.*@/, '//nobody:secret@');
    const api = programs.start('api/main.ts', { ...env, PORT: '0', SLUICE_READER_DATABASE_URL: wrong });
    expect(await api.exited).toEqual({ code: 78, signal: null });
    expect(api.output()).toContain(
      'SLUICE_READER_DATABASE_URL cannot be used: password authentication failed for user \\"nobody\\".',
    );
    expect(api.output()).not.toContain(':secret@');
  });
});
