#!/usr/bin/env node
// `npx sluice …`. Runs on Node 20 and newer: installs missing dependencies, then starts `main.ts` with the Node that
// the project pins, because older ones cannot run TypeScript.
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { keepingCompiled } from '../compiled.mjs';
import { ensureDependencies } from '../scripts/ensure-dependencies.mjs';

// The options of the command may contain a key, which everybody could read in the list of processes.
if (process.argv.some((one) => one.startsWith('--key'))) process.title = 'sluice';
await ensureDependencies();
const here = path.dirname(fileURLToPath(import.meta.url));
const pinned = path.join(here, '..', 'node_modules', '.bin', 'node');
const child = spawn(
  existsSync(pinned) ? pinned : process.execPath,
  [path.join(here, 'main.ts'), ...process.argv.slice(2)],
  { stdio: 'inherit', env: keepingCompiled(process.env) },
);
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => child.kill(signal));
child.on('error', (error) => {
  console.error(`sluice could not start: ${error.message}`);
  process.exit(1);
});
child.on('close', (code, signal) => process.exit(signal ? 1 : (code ?? 1)));
