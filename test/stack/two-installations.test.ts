import { readFileSync } from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { CommandError } from '../../cli/command-error.ts';
import { settingsOf } from '../../cli/installation.ts';
import { databasePlace, type Installation } from '../../stack/installation.ts';
import { sluice } from '../support/cli.ts';
import { cacheDir, makeDataDir } from '../support/data-dir.ts';
import { eventually } from '../support/eventually.ts';
import { READY, type SluiceProcess, settingsFor, startSluice } from '../support/sluice.ts';

interface Installed {
  dataDir: string;
  settings: Record<string, string>;
  process: SluiceProcess;
}

describe('two installations on one machine', () => {
  const installed: Installed[] = [];
  let mine: Installed;
  let other: Installed;

  beforeAll(async () => {
    for (const more of [undefined, { TEMPORAL_NAMESPACE: 'second', SLUICE_TASK_QUEUE: 'second' }]) {
      const dataDir = makeDataDir();
      const settings = { ...(await settingsFor(dataDir)), ...more };
      installed.push({ dataDir, settings, process: startSluice(settings) });
    }
    await Promise.all(installed.map((one) => one.process.until(READY)));
    [other, mine] = installed as [Installed, Installed];
  });
  afterAll(async () => {
    await Promise.all(installed.map((one) => one.process.end('SIGTERM')));
  });

  /** What somebody types who has only said which data directory. */
  const run = (args: string[], more: Record<string, string> = {}) =>
    sluice(args, { SLUICE_DATA_DIR: mine.dataDir, SLUICE_CACHE_DIR: cacheDir, ...more });

  async function api(path_: string, body?: object): Promise<Record<string, unknown>> {
    const file = path.join(mine.dataDir, 'credentials.json');
    const { base_url, personal_api_key } = JSON.parse(readFileSync(file, 'utf8'));
    const response = await fetch(`${base_url}/api/projects/@current/${path_}`, {
      method: body ? 'POST' : 'GET',
      headers: { authorization: `Bearer ${personal_api_key}`, 'content-type': 'application/json' },
      ...(body ? { body: JSON.stringify(body) } : {}),
    });
    return (await response.json()) as Record<string, unknown>;
  }

  test('a command that knows the data directory works on its Temporal, namespace and task queue', async () => {
    const { id } = await api('batch_exports/', {
      ...{ name: 'Lake', interval: 'hour' },
      destination: { type: 'NoOp', config: {} },
    });
    const result = await run(['exports', 'run', id as string, '--json']);
    expect(result).toMatchObject({ code: 0, stderr: '' });
    const { workflow_id: workflowId } = JSON.parse(result.stdout);
    await eventually(async () => {
      const { results } = (await api(`batch_exports/${id}/runs/`)) as { results: { status: string }[] };
      return results.some(({ status }) => status === 'Completed');
    });
    expect(workflowId).toContain(id);
  });

  test('doctor looks at the running installation, its API included', async () => {
    const { code, stdout } = await run(['doctor']);
    expect(stdout).toContain(`Temporal answers at 127.0.0.1:${mine.settings.SLUICE_TEMPORAL_PORT}.`);
    expect(stdout).toContain('The namespace second exists.');
    expect(stdout).toContain('polls the task queue second.');
    expect(stdout).toContain(`The API is ready on port ${mine.settings.PORT}.`);
    expect(code).toBe(0);
  });

  test('what contradicts the running installation is refused', async () => {
    const temporal = `127.0.0.1:${other.settings.SLUICE_TEMPORAL_PORT}`;
    for (const [name, value, own] of [
      ['TEMPORAL_ADDRESS', temporal, `127.0.0.1:${mine.settings.SLUICE_TEMPORAL_PORT}`],
      ['SLUICE_TEMPORAL_PORT', other.settings.SLUICE_TEMPORAL_PORT, mine.settings.SLUICE_TEMPORAL_PORT],
      ['TEMPORAL_NAMESPACE', 'default', 'second'],
      ['SLUICE_TASK_QUEUE', 'sluice', 'second'],
    ] as [string, string, string][]) {
      expect(await run(['exports'], { [name]: value })).toEqual({
        code: 1,
        stdout: '',
        stderr: `error: ${name} is ${value}, but the Sluice that runs with the data directory ${mine.dataDir} has ${own}. Unset ${name}, or set SLUICE_DATA_DIR to the data directory of the other installation.\n`,
      });
    }
  });

  test('once it has stopped, nothing is asked of the Temporal of another one', async () => {
    const { results } = (await api('batch_exports/')) as { results: { id: string }[] };
    const { id } = results[0] as { id: string };
    expect(await mine.process.end('SIGTERM')).toBe(0);
    const refused = await run(['exports', 'run', id]);
    expect(refused.code).toBe(1);
    expect(refused.stderr).toContain(`error: No Sluice runs with the data directory ${mine.dataDir}`);
    // The row is the truth: its Temporal follows when it runs again.
    const paused = await run(['exports', 'pause', id]);
    expect(paused).toMatchObject({ code: 0, stdout: 'Lake is paused.\n' });
    expect(paused.stderr).toMatch(
      /No Sluice runs with .*\nTemporal did not accept the change; maintenance repeats it within a minute\n$/,
    );
  });
});

describe('the settings of a command', () => {
  const address = 'temporal.test:7233';
  const running = (installation: Partial<Installation>) => (): Installation => ({
    ...{ database: null, ownTemporal: true, settings: { TEMPORAL_ADDRESS: '127.0.0.1:7333' } },
    ...installation,
  });
  const URL = 'postgres://app:secret@db.test/sluice';

  test('are those of the environment where it says all', () => {
    const given = { DATABASE_URL: URL, TEMPORAL_ADDRESS: address };
    expect(settingsOf(given, running({})).TEMPORAL_ADDRESS).toBe(address);
    expect(settingsOf(given, () => undefined).TEMPORAL_ADDRESS).toBe(address);
  });

  test('are not those of an installation with another database', () => {
    expect(settingsOf({ DATABASE_URL: URL }, running({})).TEMPORAL_ADDRESS).toBeUndefined();
    const there = running({ database: 'db.test:5432/other' });
    expect(settingsOf({ DATABASE_URL: URL }, there).TEMPORAL_ADDRESS).toBeUndefined();
    expect(() => settingsOf({}, there)).toThrow(CommandError);
    expect(() => settingsOf({}, there)).toThrow(
      'uses the database db.test:5432/other. Set DATABASE_URL to it.',
    );
  });

  test('are those of the installation with the same database, whoever its user is', () => {
    const there = running({ database: databasePlace(URL), ownTemporal: false });
    const other = 'postgres://admin:other@db.test:5432/sluice';
    expect(settingsOf({ DATABASE_URL: other }, there).TEMPORAL_ADDRESS).toBe('127.0.0.1:7333');
    // An own port is of no concern where Temporal is not the installation's own.
    expect(settingsOf({ DATABASE_URL: other, SLUICE_TEMPORAL_PORT: '1' }, there).SLUICE_TEMPORAL_PORT).toBe(
      1,
    );
    expect(settingsOf({ TEMPORAL_ADDRESS: 'localhost:7333' }, running({})).TEMPORAL_ADDRESS).toBe(
      'localhost:7333',
    );
  });
});
