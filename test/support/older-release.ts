import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll } from '@jest/globals';

const root = path.resolve(import.meta.dirname, '../..');

/** Whether the history of the repository has a commit. A copy without its history has none. */
export const hasCommit = (commit: string): boolean =>
  existsSync(path.join(root, '.git')) &&
  spawnSync('git', ['cat-file', '-e', `${commit}^{commit}`], { cwd: root }).status === 0;

/** Unpacks the sources of a commit for the tests of one file. They use the packages of today. */
export function olderReleaseForFile(commit: string): string {
  const folder = mkdtempSync(path.join(tmpdir(), 'older-release-'));
  afterAll(() => rmSync(folder, { recursive: true, force: true }));
  const archive = execFileSync('git', ['archive', commit], { cwd: root, maxBuffer: 1_000_000_000 });
  execFileSync('tar', ['-x', '-C', folder], { input: archive });
  symlinkSync(path.join(root, 'node_modules'), path.join(folder, 'node_modules'));
  return folder;
}
