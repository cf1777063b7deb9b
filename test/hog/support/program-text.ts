import type { Random } from './random.ts';

// Texts of programs as people write them, and as nobody should: with and without semicolons, blocks and comments.

const NAMES = [
  'a',
  'b',
  'print',
  'if',
  'for',
  'date',
  'id',
  'f',
  '$x',
  '`q r`',
  '"let"',
  'x1',
  'end',
  'key',
  'first',
];
const OPERATORS = [
  '+',
  '-',
  '=',
  ':=',
  '??',
  'and',
  'or',
  'in',
  'not in',
  'is',
  'like',
  '||',
  '.',
  '?.',
  '<',
  'as',
];
const BREAKS = [
  '\n',
  ' ',
  ';',
  ';\n',
  " // it's {\n",
  ' /* } */ ',
  '\n-- (\n',
  '\r',
  '\n# "\n',
  ';;',
  '\u00a0',
];

export function programText(random: Random, depth = 3): string {
  const parts = random.list(6, () => statement(random, depth) + random.pick(BREAKS));
  return parts.join('');
}

function block(random: Random, depth: number): string {
  if (random.chance(0.1)) return random.pick(['{}', '{ }', "{'k': 1}", '{x}', '{;}', '{ {} }', '{{}}']);
  return `{${random.pick(BREAKS)}${programText(random, depth - 1)}}`;
}

function body(random: Random, depth: number): string {
  return random.chance(0.8) ? block(random, depth) : statement(random, depth - 1);
}

function condition(random: Random, depth: number): string {
  let text = `if (${expression(random, 1)}) ${body(random, depth)}`;
  while (random.chance(0.4)) text += ` else if (${expression(random, 0)}) ${body(random, depth)}`;
  if (random.chance(0.4)) text += ` else ${body(random, depth)}`;
  return text;
}

function statement(random: Random, depth: number): string {
  const expr = () => expression(random, 2);
  const name = random.pick(NAMES);
  switch (random.below(depth > 0 ? 16 : 7)) {
    case 0:
      return `let ${name}`;
    case 1:
      return `let ${name} := ${expr()}`;
    case 2:
      return `${name}${random.pick(['', '.x', '[1]'])} := ${expr()}`;
    case 3:
      return random.pick(['return', `return ${expr()}`, `throw ${expr()}`]);
    case 4:
    case 5:
      return expr();
    case 6:
      return random.pick(['', ';', 'else', '0', `{${expr()}}`, `(${expr()})`]);
    case 7:
    case 8:
    case 9:
      return condition(random, depth);
    case 10:
      return `while (${expr()}) ${body(random, depth)}`;
    case 11:
      return `for (${random.pick(['let i := 0', 'i := 1', 'i', ''])}; i < 3; i := i + 1) ${body(random, depth)}`;
    case 12:
      return `for (let ${random.pick(['v', 'k, v'])} in ${expr()}) ${body(random, depth)}`;
    case 13:
      return `${random.pick(['fun', 'fn', 'FUN'])} ${name}(${random.pick(['', 'x', 'x, y'])}) ${block(random, depth)}`;
    case 14: {
      const clause = random.pick(['catch', 'catch (e)', 'catch (e: Odd)', 'finally', '']);
      return `try ${block(random, depth)} ${clause} ${clause ? block(random, depth) : ''}`;
    }
    default:
      return block(random, depth);
  }
}

function expression(random: Random, depth: number): string {
  const one = () => expression(random, depth - 1);
  switch (random.below(depth > 0 ? 13 : 5)) {
    case 0:
    case 1:
      return random.pick(NAMES);
    case 2:
      return random.pick(['1', '1.5', '.5', '0x1F', '1e5', 'null', 'true']);
    case 3:
      return random.pick(["'it''s'", "'\\''", "'{'", "'😀 ('", "f'a {b} \\{'", "f'{f'{1}'}'", '"}"']);
    case 4:
      return random.pick(["f'x'", "date '2020-01-01'", 'interval 1 day', 'a.if', 'x::date', '-1', '#1']);
    case 5:
    case 6:
      return `${one()} ${random.pick(OPERATORS)} ${one()}`;
    case 7:
      return `${random.pick(NAMES)}(${random.list(2, one).join(', ')})`;
    case 8:
      return random.pick([`[${one()}, 1]`, `(${one()}, 2)`, `(${one()})`, `{'k': ${one()}}`, '{}', '()']);
    case 9:
      return `${random.pick(['x', '(x, y)', '()'])} -> ${random.chance(0.5) ? block(random, 1) : one()}`;
    case 10:
      return `case when ${one()} then ${one()} else ${one()} end`;
    case 11:
      return `${one()} ? ${one()} : ${one()}`;
    default:
      return random.pick([
        `not ${one()}`,
        `-${one()}`,
        `${one()}[1]`,
        '<a b="1"/>',
        "<p>it's</p>",
        `(select ${one()})`,
      ]);
  }
}
