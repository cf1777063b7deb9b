import { execFile } from 'node:child_process';
import { existsSync, mkdirSync } from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import { loadConfig } from '../../config.ts';

const execute = promisify(execFile);
const VERSION = '4.32.5';

/** Where the fuzzer is, installed into the cache on first use; or why it cannot be had. */
export async function findSchemathesis(): Promise<{ program: string } | { missing: string }> {
  const { SLUICE_CACHE_DIR } = loadConfig({ SLUICE_CACHE_DIR: process.env.SLUICE_CACHE_DIR });
  const home = path.join(SLUICE_CACHE_DIR, `schemathesis-${VERSION}`);
  const program = path.join(home, 'bin', 'schemathesis');
  try {
    await execute('python3', ['-c', 'import sys, venv; sys.exit(sys.version_info < (3, 10))']);
  } catch {
    return { missing: 'Python 3.10 or newer with its venv module is not on this machine' };
  }
  if (existsSync(program)) return { program };
  try {
    mkdirSync(SLUICE_CACHE_DIR, { recursive: true });
    await execute('python3', ['-m', 'venv', home]);
    await execute(path.join(home, 'bin', 'pip'), ['install', '--quiet', `schemathesis==${VERSION}`]);
    return { program };
  } catch (error) {
    return {
      missing: `schemathesis ${VERSION} cannot be installed: ${(error as Error).message.slice(0, 300)}`,
    };
  }
}

export interface FuzzResult {
  code: number;
  output: string;
}

export async function runSchemathesis(program: string, args: string[], cwd: string): Promise<FuzzResult> {
  try {
    const { stdout, stderr } = await execute(program, args, {
      cwd,
      maxBuffer: 64 * 1024 * 1024,
      env: { PATH: process.env.PATH, HOME: process.env.HOME, NO_COLOR: '1' },
    });
    return { code: 0, output: `${stdout}${stderr}` };
  } catch (error) {
    const failure = error as { code?: number; stdout?: string; stderr?: string };
    return { code: Number(failure.code), output: `${failure.stdout ?? ''}${failure.stderr ?? ''}` };
  }
}
