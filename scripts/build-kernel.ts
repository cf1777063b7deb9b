// `node scripts/build-kernel.ts [file]` compiles formats/kernel/assembly/ to formats/kernel/kernel.wasm, or to the file.
import { execFileSync } from 'node:child_process';
import path from 'node:path';
import { parseArgs } from 'node:util';

const root = path.join(import.meta.dirname, '..');
const { positionals } = parseArgs({ allowPositionals: true });
const target = path.resolve(positionals[0] ?? path.join(root, 'formats/kernel/kernel.wasm'));
// The compiler runs in the root with relative paths, so that the same sources produce the same bytes everywhere.
execFileSync(
  process.execPath,
  [
    path.join(root, 'node_modules/assemblyscript/bin/asc.js'),
    ...['formats/kernel/assembly/index.ts', '--outFile', path.relative(root, target)],
    ...['-O3', '--enable', 'simd', '--runtime', 'stub', '--noAssert'],
  ],
  { cwd: root, stdio: 'inherit' },
);
