// Runs before `npm start`, `npm test` and the other commands, with any version of Node. If node_modules is missing or
// belongs to another lock file, it installs the packages of package-lock.json. This file must not import anything that
// is not part of Node itself.
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

const root = path.dirname(path.dirname(fileURLToPath(import.meta.url)));
// A checkout needs the development tools, because `npm test` is one of its two commands. An image does not need them.
const production = process.env.NODE_ENV === 'production';
const stamp = path.join(root, 'node_modules', '.sluice-installed');

const kind = production ? 'production' : 'development';
// What is installed for development serves production, too: one command in production must not take the tools away.
const kindsThatServe = production ? ['production', 'development'] : ['development'];

function lockHash(kindInstalled) {
  return createHash('sha256')
    .update(readFileSync(path.join(root, 'package-lock.json')))
    .update(`${process.platform}-${process.arch}-${kindInstalled}`)
    .digest('hex');
}

export function dependenciesAreInstalled() {
  if (!existsSync(stamp)) return false;
  const installed = readFileSync(stamp, 'utf8');
  return kindsThatServe.some((one) => installed === lockHash(one));
}

export async function ensureDependencies() {
  if (dependenciesAreInstalled()) return;
  const started = Date.now();
  console.error('Installing dependencies (once; usually less than a minute) …');
  const ticker = setInterval(() => {
    console.error(`  still installing, ${Math.round((Date.now() - started) / 1000)} s`);
  }, 5000);
  const code = await new Promise((resolve) => {
    // `npm install --no-save` follows the lock file like `npm ci`, but does not require that the lock file contains the
    // optional packages of every other operating system.
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
      'The dependencies could not be installed: npm install failed, see its message above. ' +
        'Check that this machine can reach the npm registry and that node_modules is writable, then try again.',
    );
    process.exit(1);
  }
  writeFileSync(stamp, lockHash(kind));
  console.error(`Dependencies installed in ${Math.round((Date.now() - started) / 1000)} s.`);
}

if (process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href) {
  await ensureDependencies();
}
