import { readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { compileBytecode } from '../../hog/bytecode/index.ts';
import { compileJavaScript } from '../../hog/javascript/index.ts';
import { run } from '../../hog/vm/index.ts';
import { testParser } from './parser/support.ts';

const parser = testParser();
const document = readFileSync(path.resolve(import.meta.dirname, '../../docs/hog.md'), 'utf8');
const blocks = [...document.matchAll(/^```(\w+)\n([\s\S]*?)^```$/gm)].map(([, kind, text]) => ({
  kind: kind as string,
  text: (text as string).trimEnd(),
}));
const examples = blocks.flatMap((block, i) => {
  const next = blocks[i + 1];
  return next && (block.kind === 'hog' || block.kind === 'template') ? [{ ...block, expected: next }] : [];
});
const globals = { person: { properties: { name: 'Ada' } } };

describe('every example of docs/hog.md', () => {
  test('is found', () => {
    expect(examples.length).toBeGreaterThan(12);
    expect(examples.length * 2).toBe(blocks.length);
  });

  test.each(examples)('$kind: $text', async ({ kind, text, expected }) => {
    if (kind === 'template') {
      const node = await parser.template(text);
      const wanted: unknown = JSON.parse(expected.text);
      expect(run(compileBytecode(node), { globals })).toMatchObject({ result: wanted });
      expect(compileJavaScript(node).run(globals)).toMatchObject({ result: wanted });
      return;
    }
    const seen = await Promise.resolve()
      .then(async () => {
        const program = await parser.program(text);
        const machine = run(compileBytecode(program, text), { globals });
        const javaScript = compileJavaScript(program, text).run(globals);
        expect(javaScript.printed).toEqual(machine.printed);
        expect(javaScript.status).toBe(machine.status);
        return machine.status === 'failed' ? machine.error.message : machine.printed.join('\n');
      })
      .catch((error: unknown) => (error as Error).message);
    expect(seen).toBe(expected.text);
  });
});
