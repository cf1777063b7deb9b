import { execFile } from 'node:child_process';
import { existsSync, mkdirSync } from 'node:fs';
import { mkdtemp, readdir, rename, rm } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { promisify } from 'node:util';
import { loadConfig } from '../../config.ts';
import { tryLock } from '../../stack/file-lock.ts';
import { goInstall } from '../../stack/go-install.ts';

/** Building one takes about three minutes on two cores, once per machine. */
export const BUILD_MILLISECONDS = 1_200_000;

const execute = promisify(execFile);

export interface GoProgram {
  /** The name of the program that Go makes of the module. */
  name: string;
  version: string;
  /** The path of its package. */
  module: string;
  /** What it is for, as in "the S3 server of tests". */
  what: string;
  /** How it shows that it works, by ending well. */
  trial: readonly string[];
}

/** A server of tests and benchmarks, built into the cache directory whole or not at all, by one process. */
export async function goBuilt({ name, version, module, what, trial }: GoProgram): Promise<string> {
  const { SLUICE_CACHE_DIR } = loadConfig({ SLUICE_CACHE_DIR: process.env.SLUICE_CACHE_DIR });
  const folder = path.join(SLUICE_CACHE_DIR, 'bin');
  const cached = path.join(folder, `${name}-${version}`);
  const report = (line: string) => void process.stderr.write(`${line}\n`);
  const works = async () =>
    existsSync(cached) &&
    (await execute(cached, trial, { timeout: 20_000 }).then(
      () => true,
      () => false,
    ));
  for (;;) {
    if (await works()) return cached;
    mkdirSync(folder, { recursive: true });
    const { lock } = tryLock(`${cached}.lock`);
    if (!lock) {
      await pause(200);
      continue;
    }
    try {
      if (await works()) return cached;
      for (const entry of await readdir(folder)) {
        if (entry.startsWith(`${name}.partial-`)) await rm(path.join(folder, entry), { recursive: true });
      }
      report(`Building ${name}, ${what}, with Go (once, about 3 minutes on 2 cores) …`);
      const partial = await mkdtemp(path.join(folder, `${name}.partial-`));
      try {
        const options = { module: `${module}@v${version}`, program: name, folder: partial, report };
        await rename(await goInstall({ ...options, env: process.env }), cached);
      } finally {
        await rm(partial, { recursive: true, force: true });
      }
    } finally {
      lock.release();
    }
  }
}
