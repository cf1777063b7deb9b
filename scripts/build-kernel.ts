// `node scripts/build-kernel.ts [folder]` compiles the sources in AssemblyScript to WebAssembly: formats/kernel/assembly/ to
// formats/kernel/kernel.wasm, and flags/engine/draws/assembly/ to flags/engine/draws/draws.wasm; or both to the folder.
import { execFileSync } from 'node:child_process';
import path from 'node:path';
import { parseArgs } from 'node:util';

const root = path.join(import.meta.dirname, '..');
const { positionals } = parseArgs({ allowPositionals: true });
for (const place of ['formats/kernel', 'flags/engine/draws']) {
  const name = `${path.basename(place)}.wasm`;
  const target = path.resolve(positionals[0] ?? path.join(root, place), name);
  // The compiler runs in the root with relative paths, so that the same sources produce the same bytes everywhere.
  execFileSync(
    process.execPath,
    [
      path.join(root, 'node_modules/assemblyscript/bin/asc.js'),
      ...[`${place}/assembly/index.ts`, '--outFile', path.relative(root, target)],
      ...['-O3', '--enable', 'simd', '--runtime', 'stub', '--noAssert'],
    ],
    { cwd: root, stdio: 'inherit' },
  );
}
