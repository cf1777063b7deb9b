import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { bundleWorkflowCode, DefaultLogger } from '@temporalio/worker';

const root = path.resolve(import.meta.dirname, '../..');

/** One change of the sources of workflows. */
export interface Change {
  file: string;
  from: string;
  to: string;
}

/** Bundles the workflows as another version of Sluice has them. Each text must be in its file exactly once. */
export async function bundleOf(changes: readonly Change[]): Promise<{ code: string }> {
  const folder = mkdtempSync(path.join(tmpdir(), 'sluice-test-workflows-'));
  try {
    const workflows = path.join(folder, 'workflows');
    cpSync(path.join(root, 'workflows'), workflows, { recursive: true });
    cpSync(path.join(root, 'package.json'), path.join(folder, 'package.json'));
    symlinkSync(path.join(root, 'node_modules'), path.join(folder, 'node_modules'));
    for (const { file, from, to } of changes) {
      const name = path.join(workflows, file);
      const text = readFileSync(name, 'utf8');
      if (text.split(from).length !== 2) throw new Error(`${file} does not have this text once: ${from}`);
      writeFileSync(
        name,
        text.replace(from, () => to),
      );
    }
    return await bundleWorkflowCode({
      workflowsPath: path.join(workflows, 'index.ts'),
      logger: new DefaultLogger('WARN'),
    });
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
