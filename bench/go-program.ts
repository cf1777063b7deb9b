import { execFileSync } from 'node:child_process';
import path from 'node:path';

const root = path.resolve(import.meta.dirname, '..');

/** Builds the Go program of a folder of the project, and returns the file that it was written to. */
export function buildGo(folder: string, file: string): string {
  execFileSync('go', ['build', '-o', file, '.'], { cwd: path.join(root, folder), stdio: 'inherit' });
  return file;
}
