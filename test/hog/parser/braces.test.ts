import { expect, test } from '@jest/globals';
import { compileBytecode } from '../../../hog/bytecode/index.ts';
import { run } from '../../../hog/vm/index.ts';
import { testParser } from './support.ts';

const parser = testParser();

test.each([
  ["return f'\\{x\\}'", '{x}'],
  ["return f'a \\} {1 + 1} \\}{f'\\{in\\}'}'", 'a } 2 }{in}'],
  ["let a := f'\\}'; if (a = '}') { return f'\\{{a}\\}' } else { return 1 }", '{}}'],
  ["return f'é\\}😀'", 'é}😀'],
  ["return f'\\\\\\}'", '\\}'],
])('%s', async (source, expected) => {
  expect(run(compileBytecode(await parser.program(source), source))).toMatchObject({ result: expected });
});

test.each([
  ['\\{a\\} {1}\\}', '{a} 1}'],
  ["it's \\}", "it's }"],
])('the template %s', async (source, expected) => {
  expect(run(compileBytecode(await parser.template(source)))).toMatchObject({ result: expected });
});

test('after an escaped brace, places in the text are right', async () => {
  await expect(parser.program("let a := f'\\}';\nlet b := )")).rejects.toMatchObject({ line: 2, column: 10 });
  await expect(parser.program("let a := f'xx';\nlet b := )")).rejects.toMatchObject({ line: 2, column: 10 });
  await expect(parser.program("return '\\}'")).rejects.toMatchObject({ code: 'syntax' });
});
