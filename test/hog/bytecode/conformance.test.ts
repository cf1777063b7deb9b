import { existsSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from '@jest/globals';
import { type Bytecode, compileBytecode } from '../../../hog/bytecode/index.ts';
import { run } from '../../../hog/vm/index.ts';
import { testParser } from '../parser/support.ts';

/**
 * The public conformance programs are not part of this project. HOG_CONFORMANCE names a folder with
 * `<name>.hog`, `<name>.hoge` (bytecode) and, if known, `<name>.stdout`; each is compared.
 */
const folder = process.env.HOG_CONFORMANCE;
const parser = testParser();
const names = folder
  ? readdirSync(folder)
      .filter((file) => file.endsWith('.hog'))
      .map((file) => file.slice(0, -4))
  : [];

if (folder) {
  test.each(names)('%s', async (name) => {
    const text = (ending: string) => readFileSync(path.join(folder, `${name}.${ending}`), 'utf8');
    const source = text('hog');
    const code = compileBytecode(await parser.program(source), source);
    expect(code).toEqual(JSON.parse(text('hoge')) as Bytecode);
    if (!existsSync(path.join(folder, `${name}.stdout`))) return;
    const { printed } = run(code, { clock: Date.now, random: Math.random });
    expect(printed.join('\n').trim()).toBe(text('stdout').trim());
  });
} else {
  test('the folder of conformance programs is not given', () => {
    expect(names).toEqual([]);
  });
}
