// Compiles hog/library/library.hog to hog/library/bytecode.ts. The bytecode is compiled in advance, because the VM is
// synchronous and cannot wait for the parser.
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { compileLibrary } from '../hog/library/compile.ts';
import { createParser } from '../hog/parser/index.ts';

const folder = path.join(path.dirname(import.meta.dirname), 'hog/library');
const parser = createParser();
const source = readFileSync(path.join(folder, 'library.hog'), 'utf8');
const functions = compileLibrary(await parser.program(source), source);
await parser.close();
const lines = functions.map((one) => `  ${JSON.stringify(one)}`).join(',\n');
writeFileSync(
  path.join(folder, 'bytecode.ts'),
  `// Written by scripts/generate-hog-library.ts from library.hog.\n// biome-ignore-all format: written by a program\nimport type { WrittenFunction } from './compile.ts';\n\nexport const written: WrittenFunction[] = [\n${lines},\n];\n`,
);
