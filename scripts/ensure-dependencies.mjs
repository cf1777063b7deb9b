// Runs before `npm start`, `npm test` and the rest, on whatever Node the machine has: installs what
// package-lock.json names when node_modules is missing or was installed from another lock file.
// It must not import anything that is not part of Node itself.
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

const root = path.dirname(path.dirname(fileURLToPath(import.meta.url)));
// A checkout has the development tools, because `npm test` is one of its two commands; an image does without.
const production = process.env.NODE_ENV === 'production';
const stamp = path.join(root, 'node_modules', '.sluice-installed');

function lockHash() {
  return createHash('sha256')
    .update(readFileSync(path.join(root, 'package-lock.json')))
    .update(`${process.platform}-${process.arch}-${production ? 'production' : 'development'}`)
    .digest('hex');
}

export function dependenciesAreInstalled() {
  return existsSync(stamp) && readFileSync(stamp, 'utf8') === lockHash();
}

export async function ensureDependencies() {
  if (dependenciesAreInstalled()) return;
  const started = Date.now();
  console.error('Installing dependencies (once; usually less than a minute) …');
  const ticker = setInterval(() => {
    console.error(`  still installing, ${Math.round((Date.now() - started) / 1000)} s`);
  }, 5000);
  const code = await new Promise((resolve) => {
    // `npm install --no-save` keeps to the lock file like `npm ci`, but does not insist that the lock file knows
    // the optional packages of every other operating system.
    const child = spawn(
      'npm',
      [
        'install',
        '--no-save',
        '--no-audit',
        '--no-fund',
        '--loglevel=error',
        ...(production ? ['--omit=dev'] : ['--include=dev']),
      ],
      { cwd: root, stdio: ['ignore', 2, 2] },
    );
    child.on('error', (error) => {
      console.error(`npm could not be started: ${error.message}`);
      resolve(1);
    });
    child.on('close', resolve);
  });
  clearInterval(ticker);
  if (code !== 0) {
    console.error(
      'The dependencies could not be installed (npm install failed, its message stands above). ' +
        'Check that this machine reaches the npm registry and that node_modules is writable, then try again.',
    );
    process.exit(1);
  }
  writeFileSync(stamp, lockHash());
  console.error(`Dependencies installed in ${Math.round((Date.now() - started) / 1000)} s.`);
}

if (process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href) {
  await ensureDependencies();
}
