import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, expect, test } from '@jest/globals';
import { countSealed } from '../../db/sealed-columns.ts';
import { PRODUCTS } from '../../products.ts';
import { generateKey, parseKeyring } from '../../secrets/envelope.ts';
import { readKeyFile } from '../../secrets/key-file.ts';
import { sealedColumns } from '../../tenancy/product.ts';
import { createTenant } from '../support/api.ts';
import { sluice } from '../support/cli.ts';
import { databaseForFile } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import { inherited, programsForFile } from '../support/programs.ts';
import { allocateNamespace } from '../support/temporal.ts';

const programs = programsForFile();
const database = databaseForFile();
const folder = mkdtempSync(path.join(tmpdir(), 'sluice-keys-'));
const file = path.join(folder, 'encryption-keys');
afterAll(() => rmSync(folder, { recursive: true }));

/** Starts a rotation and kills it as soon as it has done a step. */
async function rotateAndKill(env: Record<string, string>): Promise<void> {
  const child = spawn(process.execPath, ['cli/main.ts', 'keys', 'rotate'], {
    env: { ...inherited(), ...env },
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  const gone = once(child, 'exit');
  child.stdout.once('data', () => child.kill('SIGKILL'));
  await gone;
}

test('keys rotate under running processes, also after kills, and no secret is lost', async () => {
  writeFileSync(file, `${generateKey('old')}\n`, { mode: 0o600 });
  const { address, namespace } = allocateNamespace();
  const env = {
    DATABASE_URL: database.url,
    TEMPORAL_ADDRESS: address,
    TEMPORAL_NAMESPACE: namespace,
    SLUICE_ENCRYPTION_KEY_FILE: file,
  };
  const api = await programs.startApi(env);
  const worker = programs.start('worker/main.ts', env);
  await programs.ready(api);
  await eventually(async () => worker.output().includes('the worker polls'));

  const tenant = await createTenant(database.pool, 'Rotating');
  const headers = { authorization: `Bearer ${tenant.key}` };
  const url = `${api.url}/api/projects/${tenant.projectId}/`;
  const ask = async (method: string, path = '') => {
    const answer = await fetch(`${url}${path}`, { method, headers });
    expect(answer.status).toBe(200);
    return (await answer.json()) as { secret_api_token: string };
  };
  let token = (await ask('PATCH', 'rotate_secret_token/')).secret_api_token;
  let busy = true;
  const writing = (async () => {
    while (busy) {
      expect((await ask('GET')).secret_api_token).toBe(token);
      token = (await ask('PATCH', 'rotate_secret_token/')).secret_api_token;
    }
  })();
  try {
    for (let kill = 0; kill < 2; kill++) await rotateAndKill(env);
    const rotated = await sluice(['keys', 'rotate'], env);
    expect(rotated).toMatchObject({ code: 0, stderr: '' });
  } finally {
    busy = false;
    await writing;
  }
  const { primary } = parseKeyring(readKeyFile(file));
  expect(primary).not.toBe('old');
  const keys = (await countSealed(database.pool, sealedColumns(PRODUCTS))).map(({ keyId }) => keyId);
  expect(new Set(keys)).toEqual(new Set([primary]));
  expect((await ask('GET')).secret_api_token).toBe(token);
  const shown = await sluice(['keys'], env);
  expect(shown).toMatchObject({ code: 0, stderr: '' });
  for (const name of ['api', 'worker']) expect(shown.stdout).toContain(`${name} (process `);
  expect(await sluice(['keys', 'forget', 'old'], env)).toMatchObject({ code: 0 });
  // The processes hear of it, and go on.
  await eventually(async () => !(await sluice(['keys'], env)).stdout.includes('reads old'));
  expect((await ask('GET')).secret_api_token).toBe(token);

  for (const program of [worker, api]) {
    program.kill('SIGTERM');
    expect(await program.exited).toEqual({ code: 0, signal: null });
  }
  const { rows } = await database.pool.query('select process from key_holders');
  expect(rows).toEqual([]);
});
