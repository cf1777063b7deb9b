import { createHash, randomUUID } from 'node:crypto';
import { mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { bundleWorkflowCode, DefaultLogger, type WorkerOptions } from '@temporalio/worker';
import { COMPILED_DIR } from '../compiled.mjs';

const ROOT = path.join(import.meta.dirname, '..');
export const WORKFLOWS_PATH = path.join(ROOT, 'workflows/index.ts');
const FOLDER = path.join(COMPILED_DIR, 'workflows');

type Bundle = NonNullable<WorkerOptions['workflowBundle']>;

/**
 * Returns the workflows in the form in which a worker loads them. Bundling takes seconds, so the result stays on disk
 * under a name that is made of all that goes into it. Where nothing can be written, each start bundles anew.
 */
export async function workflowBundle(folder = FOLDER): Promise<Bundle> {
  const name = `${await digest()}.js`;
  const file = path.join(folder, name);
  const kept = await readFile(file, 'utf8').catch(() => undefined);
  if (kept !== undefined) return { code: kept };
  const { code } = await bundleWorkflowCode({
    workflowsPath: WORKFLOWS_PATH,
    logger: new DefaultLogger('WARN'),
  });
  await keep(folder, name, code).catch(() => undefined);
  return { code };
}

/** Workflows import only types from the rest of Sluice, so their own files and the packages decide what the bundle is. */
async function digest(): Promise<string> {
  const hash = createHash('sha256').update(process.version);
  const folder = path.dirname(WORKFLOWS_PATH);
  const names = (await readdir(folder)).filter((name) => name.endsWith('.ts')).sort();
  for (const file of [
    ...names.map((name) => path.join(folder, name)),
    path.join(ROOT, 'package-lock.json'),
  ]) {
    const content = await readFile(file);
    hash.update(`\0${path.relative(ROOT, file)}\0${content.length}\0`).update(content);
  }
  return hash.digest('hex');
}

/** Nobody ever reads half of a bundle, and bundles of other versions go. */
async function keep(folder: string, name: string, code: string): Promise<void> {
  await mkdir(folder, { recursive: true });
  const draft = path.join(folder, `${randomUUID()}.draft`);
  try {
    await writeFile(draft, code);
    await rename(draft, path.join(folder, name));
  } finally {
    await rm(draft, { force: true });
  }
  const others = (await readdir(folder)).filter((one) => one.endsWith('.js') && one !== name);
  await Promise.all(others.map((one) => rm(path.join(folder, one), { force: true })));
}
