import { spawnSync } from 'node:child_process';
import { type Availability, installed } from './installed.ts';

export type { Availability };

/** A folder with these packages (`name==version`). */
export function findPythonPackages(name: string, requirements: readonly string[]): Availability {
  const python = spawnSync('python3', ['-m', 'pip', '--version'], { encoding: 'utf8' });
  if (python.status !== 0) return { found: undefined, reason: 'python3 with pip is not installed' };
  const pip = ['python3', '-m', 'pip', 'install', '--quiet', '--target'];
  return installed(name, (folder) => [...pip, folder, ...requirements]);
}
