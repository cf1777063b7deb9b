import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll } from '@jest/globals';
import { apiForFile, type Tenant, type TestApi } from '../../support/api.ts';
import { type CommandResult, sluice } from '../../support/cli.ts';

export interface FilesWorld {
  api: TestApi;
  tenant: Tenant;
  url: string;
  /** A new empty folder. */
  folder(): string;
  /** Runs `sluice functions …` against the API, with the tenant's key in the environment. */
  run(args: string[], env?: Record<string, string>): Promise<CommandResult>;
  /** Sends a request about functions as somebody else would, and returns the answer. */
  ask(method: string, path: string, body?: unknown): Promise<Record<string, unknown>>;
}

/** An API that listens, for commands that run as processes of their own. */
export function filesWorldForFile(env: Record<string, string> = {}): FilesWorld {
  const folders: string[] = [];
  afterAll(() => {
    for (const one of folders) rmSync(one, { recursive: true, force: true });
  });
  const api = apiForFile(env);
  const world = { api } as FilesWorld;
  beforeAll(async () => {
    world.tenant = await api.createTenant('Anna');
    world.url = await api.app.listen({ host: '127.0.0.1', port: 0 });
  });
  world.folder = () => {
    const made = mkdtempSync(path.join(os.tmpdir(), 'sluice-functions-'));
    folders.push(made);
    return made;
  };
  world.run = (args, more = {}) =>
    sluice(['functions', ...args], {
      SLUICE_URL: world.url,
      SLUICE_API_KEY: world.tenant.key,
      SLUICE_PROJECT_ID: String(world.tenant.projectId),
      ...more,
    });
  world.ask = async (method, where, body) => {
    const url = `/api/projects/${world.tenant.projectId}/hog_functions/${where}`;
    const answer = await api.request(world.tenant, method, url, body);
    if (answer.statusCode >= 300) throw new Error(`${method} ${url}: ${answer.body}`);
    return answer.json();
  };
  return world;
}

/** Writes a function into a folder. */
export function write(folder: string, name: string, program: string, definition?: object): string {
  const ending = String((definition as { type?: string })?.type ?? '').startsWith('site') ? 'ts' : 'hog';
  writeFileSync(path.join(folder, `${name}.${ending}`), program);
  if (definition) writeFileSync(path.join(folder, `${name}.json`), JSON.stringify(definition, null, 2));
  return path.join(folder, `${name}.${ending}`);
}

export const read = (folder: string, name: string): string => readFileSync(path.join(folder, name), 'utf8');
export const json = (folder: string, name: string): Record<string, unknown> => JSON.parse(read(folder, name));
export const names = (folder: string): string[] => readdirSync(folder).toSorted();
