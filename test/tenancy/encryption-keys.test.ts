import { randomUUID } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { announceKeys, withdrawKeys } from '../../db/encryption-keys.ts';
import type { Queryable } from '../../db/pool.ts';
import { countSealed } from '../../db/sealed-columns.ts';
import { PRODUCTS } from '../../products.ts';
import { generateKey, type Keyring, marksOf, open, parseKeyring, seal } from '../../secrets/envelope.ts';
import { readKeyFile, writeKeyFile } from '../../secrets/key-file.ts';
import { openKeys } from '../../secrets/key-source.ts';
import {
  findKeyState,
  forgetKey,
  KeyError,
  type KeyPlace,
  keyProblems,
  type Rotation,
  rotateKeys,
} from '../../tenancy/encryption-keys.ts';
import { sealedColumns } from '../../tenancy/product.ts';
import { openProjectSecret } from '../../tenancy/project-secrets.ts';
import { createTenant } from '../support/api.ts';
import { sluice } from '../support/cli.ts';
import { databaseForFile } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';

const database = databaseForFile();
const columns = sealedColumns(PRODUCTS);
const TOKENS = 5;
let folder: string;
let file: string;
let projects: number[];
let lines: string[];

const ring = () => parseKeyring(readKeyFile(file));
const filePlace = (): KeyPlace => ({
  name: file,
  read: ring,
  write: (keyring) => writeKeyFile(file, keyring),
});
const settingPlace = (text: string): KeyPlace => ({
  name: 'SLUICE_ENCRYPTION_KEYS',
  read: () => parseKeyring(text),
});
const rotation = (changes: Partial<Rotation> = {}): Rotation => ({
  queryable: database.pool,
  columns,
  place: filePlace(),
  report: (line) => void lines.push(line),
  patience: 0,
  ...changes,
});
const contextOf = (id: number) => `projects/${id}/secret_api_token`;

/** A process that says which keys it has. */
async function startProcess(name: string, keyring: Keyring | undefined) {
  const holder = { id: randomUUID(), process: name, host: 'here', pid: 7 };
  const announce = () =>
    announceKeys(database.pool, { ...holder, keys: keyring ? marksOf(keyring) : [] }, 60_000);
  await announce();
  return { announce, stop: () => withdrawKeys(database.pool, holder.id) };
}

async function tokens(): Promise<(string | null)[]> {
  const { rows } = await database.pool.query(
    'select id, secret_api_token from projects where id = any($1) order by id',
    [projects],
  );
  return rows.map((row) => openProjectSecret(ring(), row.id, row.secret_api_token));
}

const keyIds = async () =>
  (await countSealed(database.pool, columns)).map(({ keyId, values }) => [keyId, values]);
const expected = () => projects.map((id) => `phs_${id}`);

beforeEach(async () => {
  folder = mkdtempSync(path.join(tmpdir(), 'sluice-keys-'));
  file = path.join(folder, 'encryption-keys');
  writeFileSync(file, `${generateKey('old')}\n`, { mode: 0o600 });
  lines = [];
  await database.pool.query('truncate key_holders, key_rotations, batch_export_traces');
  await database.pool.query('update projects set secret_api_token = null, secret_api_token_backup = null');
  projects = [];
  for (let index = 0; index < TOKENS; index++) {
    const { projectId } = await createTenant(database.pool, 'Keys');
    projects.push(projectId);
    // The last one is as an older version stored it.
    const token = `phs_${projectId}`;
    const stored = index === TOKENS - 1 ? token : seal(ring(), token, contextOf(projectId));
    await database.pool.query('update projects set secret_api_token = $2 where id = $1', [projectId, stored]);
  }
});
afterEach(() => rmSync(folder, { recursive: true }));

describe('rotating the keys', () => {
  test('seals everything with a new key, and keeps the old one until it is forgotten', async () => {
    expect(await rotateKeys(rotation())).toBe(true);
    const { primary, keys } = ring();
    expect([primary === 'old', [...keys.keys()]]).toEqual([false, [primary, 'old']]);
    expect(await keyIds()).toEqual([[primary, TOKENS]]);
    expect(await tokens()).toEqual(expected());
    expect(statSync(file).mode & 0o777).toBe(0o600);
    await forgetKey(rotation(), 'old');
    expect([...ring().keys.keys()]).toEqual([primary]);
    expect(await tokens()).toEqual(expected());
  });

  test.each(['added', 'begun', 'promoted', 'sealed', 'finished'])(
    'goes on where it stopped: after the step "%s"',
    async (last) => {
      const stop = (step: string) => {
        if (step === last) throw new Error('killed');
      };
      await expect(rotateKeys(rotation({ onStep: stop }))).rejects.toThrow('killed');
      expect(await tokens()).toEqual(expected());
      expect(await rotateKeys(rotation())).toBe(true);
      expect(await keyIds()).toEqual([[ring().primary, TOKENS]]);
      expect(await tokens()).toEqual(expected());
      expect(keyProblems(await findKeyState(database.pool, columns, ring()))).toEqual([]);
    },
  );

  test('goes on after a kill between two batches', async () => {
    const killed = {
      query: (text: string, values: unknown[]) => {
        if (/^update projects/.test(text)) throw new Error('killed');
        return database.pool.query(text, values);
      },
    } as unknown as Queryable;
    await expect(rotateKeys(rotation({ queryable: killed }))).rejects.toThrow('killed');
    expect(await tokens()).toEqual(expected());
    expect(await rotateKeys(rotation())).toBe(true);
    expect(await keyIds()).toEqual([[ring().primary, TOKENS]]);
  });

  test('does not overwrite what is changed meanwhile', async () => {
    const [first] = projects as [number];
    let changed = '';
    const busy = {
      async query(text: string, values: unknown[]) {
        if (changed === '' && /^update projects/.test(text)) {
          changed = seal(ring(), 'phs_changed', contextOf(first));
          const sql = 'update projects set secret_api_token = $2 where id = $1';
          await database.pool.query(sql, [first, changed]);
        }
        return database.pool.query(text, values);
      },
    } as unknown as Queryable;
    expect(await rotateKeys(rotation({ queryable: busy }))).toBe(true);
    expect(await tokens()).toEqual(['phs_changed', ...expected().slice(1)]);
    expect(await keyIds()).toEqual([[ring().primary, TOKENS]]);
  });

  test('does not overwrite what a transaction under way changes', async () => {
    const [first] = projects as [number];
    let begun = false;
    const busy = {
      async query(text: string, values: unknown[]) {
        if (begun || !/^update projects/.test(text)) return database.pool.query(text, values);
        begun = true;
        const writer = await database.pool.connect();
        try {
          await writer.query('begin');
          await writer.query('update projects set secret_api_token = $2 where id = $1', [
            first,
            seal(ring(), 'phs_changed', contextOf(first)),
          ]);
          const replaced = database.pool.query(text, values);
          await eventually(async () => {
            const { rows } = await database.pool.query(
              `select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
            );
            return rows.length === 1;
          });
          await writer.query('commit');
          return await replaced;
        } finally {
          writer.release();
        }
      },
    } as unknown as Queryable;
    expect(await rotateKeys(rotation({ queryable: busy }))).toBe(true);
    expect(await tokens()).toEqual(['phs_changed', ...expected().slice(1)]);
  });

  test('waits for a process that does not hold the new key, and names it', async () => {
    const worker = await startProcess('worker', ring());
    await expect(rotateKeys(rotation())).rejects.toThrow(
      /^The worker \(process 7 on here\) does not hold the new key k\w+, so it could not read what is sealed with it\. It holds: old\. Restart it/,
    );
    // Nothing is sealed with a key that the worker does not have.
    expect([ring().primary, (await keyIds()).some(([id]) => id !== null && id !== 'old')]).toEqual([
      'old',
      false,
    ]);
    await worker.stop();
    expect(await rotateKeys(rotation())).toBe(true);
  });

  test('waits for a process that still seals with the old key, and names it', async () => {
    await expect(
      rotateKeys(
        rotation({
          onStep(step) {
            if (step === 'begun') throw new Error('killed');
          },
        }),
      ),
    ).rejects.toThrow('killed');
    // It has read the file before the new key became the first one.
    const api = await startProcess('api', ring());
    await expect(rotateKeys(rotation())).rejects.toThrow(
      /^The api \(process 7 on here\) still seals new secrets with the key old, not with k\w+\./,
    );
    expect((await keyIds()).map(([id]) => id)).not.toContain(ring().primary);
    await api.stop();
    expect(await rotateKeys(rotation())).toBe(true);
  });

  test('needs no restart of processes that read the keys from the file', async () => {
    const source = openKeys({ SLUICE_ENCRYPTION_KEY_FILE: file });
    const before = source.keyring as Keyring;
    const api = await startProcess('api', before);
    const timer = setInterval(() => {
      source.refresh();
      void api.announce();
    }, 50);
    try {
      expect(await rotateKeys(rotation({ patience: 60_000 }))).toBe(true);
    } finally {
      clearInterval(timer);
    }
    expect(before.primary).toBe(ring().primary);
    expect(open(before, seal(before, 'x', 'y'), 'y')).toBe('x');
    await api.stop();
  });

  test('a process with another key of the same id, or with none, is in the way', async () => {
    const none = await startProcess('api', undefined);
    await expect(rotateKeys(rotation())).rejects.toThrow(/does not hold the new key .* It holds: none\./);
    await none.stop();
    const { primary } = parseKeyring(readKeyFile(file).split(',').at(-1) as string);
    const other = await startProcess('api', parseKeyring(`${generateKey(primary)},${generateKey('old')}`));
    await expect(rotateKeys(rotation())).rejects.toThrow(KeyError);
    const problems = keyProblems(await findKeyState(database.pool, columns, ring()));
    expect(problems.join('\n')).toContain(
      `The api (process 7 on here) has another key with the id ${primary}.`,
    );
    await other.stop();
  });

  test('with keys in a setting, it says what to set, step by step', async () => {
    const old = readKeyFile(file);
    expect(await rotateKeys(rotation({ place: settingPlace(old) }))).toBe(false);
    expect(lines.at(-1)).toMatch(/^Add this key at the end of SLUICE_ENCRYPTION_KEYS.*\nk\w+:\S{44}$/s);
    const entry = lines.at(-1)?.split('\n').at(-1) as string;
    const added = `${old},${entry}`;
    const api = await startProcess('api', parseKeyring(old));
    await expect(rotateKeys(rotation({ place: settingPlace(added) }))).rejects.toThrow('Add the new key to');
    await api.stop();
    const restarted = await startProcess('api', parseKeyring(added));
    expect(await rotateKeys(rotation({ place: settingPlace(added) }))).toBe(false);
    expect(lines.at(-1)).toContain('Now make it the first one in SLUICE_ENCRYPTION_KEYS');
    const promoted = `${entry},${old}`;
    await expect(rotateKeys(rotation({ place: settingPlace(promoted) }))).rejects.toThrow('still seals');
    // A command without the key does not begin anew while a process has it.
    await expect(rotateKeys(rotation({ place: settingPlace(old) }))).rejects.toThrow('has begun');
    await restarted.stop();
    const last = await startProcess('api', parseKeyring(promoted));
    expect(await rotateKeys(rotation({ place: settingPlace(promoted) }))).toBe(true);
    expect(await keyIds()).toEqual([[parseKeyring(entry).primary, TOKENS]]);
    await last.stop();
  });

  test('a secret whose key is lost is named, and the rotation stays open', async () => {
    const [first] = projects as [number];
    const lost = seal(parseKeyring(generateKey('lost')), 'x', contextOf(first));
    await database.pool.query('update projects set secret_api_token = $2 where id = $1', [first, lost]);
    await expect(rotateKeys(rotation())).rejects.toThrow('1 secrets cannot be opened with the keys in');
    const problems = keyProblems(await findKeyState(database.pool, columns, ring()));
    expect(problems).toEqual([
      '1 secrets in projects.secret_api_token need the key lost, which is missing.',
      expect.stringContaining('is not finished'),
    ]);
  });
});

describe('a key is not removed', () => {
  test('while a secret or a process needs it', async () => {
    await expect(forgetKey(rotation(), 'old')).rejects.toThrow('The key old seals new secrets.');
    await expect(forgetKey(rotation(), 'never')).rejects.toThrow('There is no key never in');
    await rotateKeys(rotation());
    const [first] = projects as [number];
    const late = seal({ ...ring(), primary: 'old', keys: ring().keys }, `phs_${first}`, contextOf(first));
    await database.pool.query('update projects set secret_api_token = $2 where id = $1', [first, late]);
    await expect(forgetKey(rotation(), 'old')).rejects.toThrow(
      'Stored secrets need the key old: 1 in projects.secret_api_token.',
    );
    const environment = { DATABASE_URL: database.url, SLUICE_DATA_DIR: folder };
    expect(await sluice(['keys', 'seal'], environment)).toMatchObject({ code: 0 });
    const behind = await startProcess('worker', { ...ring(), primary: 'old', keys: ring().keys });
    await expect(forgetKey(rotation(), 'old')).rejects.toThrow('seals new secrets with the key old');
    await behind.stop();
    await forgetKey(rotation(), 'old');
    expect(ring().keys.has('old')).toBe(false);
  });
});

test('npx sluice keys shows ids, secrets and processes, and no key', async () => {
  const environment = { DATABASE_URL: database.url, SLUICE_DATA_DIR: folder };
  const first = await sluice(['keys', 'rotate'], environment);
  expect(first).toMatchObject({ code: 0, stderr: '' });
  const api = await startProcess('api', ring());
  const shown = await sluice(['keys'], environment);
  const { primary } = ring();
  expect(shown).toMatchObject({ code: 0, stderr: '' });
  expect(shown.stdout.split('\n').slice(0, 2)).toEqual([
    `key ${primary}: seals new secrets. Secrets: ${TOKENS} in projects.secret_api_token. Processes: 1 of 1.`,
    'key old: reads older secrets. Secrets: none. Processes: 1 of 1.',
  ]);
  const json = await sluice(['keys', '--json'], environment);
  expect(JSON.parse(json.stdout)).toMatchObject({ keys: [{ id: primary }, { id: 'old' }], problems: [] });
  const material = readFileSync(file, 'utf8').match(/[A-Za-z0-9+/]{43}=/g) as string[];
  expect(material).toHaveLength(2);
  for (const key of material)
    for (const { stdout } of [first, shown, json]) expect(stdout).not.toContain(key);
  await api.stop();
});
