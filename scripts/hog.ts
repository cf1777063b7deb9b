// `npm run hog -- file.hog` runs a program; --bytecode, --js and --ast show what becomes of it instead.
// Without a file: a REPL. `--globals file.json` gives both their globals.
import { readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { parseArgs } from 'node:util';
import { compileBytecode } from '../hog/bytecode/index.ts';
import { SourceError } from '../hog/errors.ts';
import { compileJavaScript } from '../hog/javascript/index.ts';
import { createParser, type Parser } from '../hog/parser/index.ts';
import { type Outcome, type RunOptions, resume, run } from '../hog/vm/index.ts';
import { HogSession } from './hog-session.ts';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    bytecode: { type: 'boolean', default: false },
    js: { type: 'boolean', default: false },
    ast: { type: 'boolean', default: false },
    globals: { type: 'string' },
    help: { type: 'boolean', default: false },
  },
});

const USAGE = `npm run hog -- [file.hog] [--bytecode | --js | --ast] [--globals file.json]
Runs a Hog program, or shows its bytecode, its JavaScript or its syntax tree. Without a file: a REPL.`;

const options: RunOptions = {
  globals: values.globals === undefined ? {} : (JSON.parse(readFileSync(values.globals, 'utf8')) as object),
  clock: Date.now,
  random: Math.random,
  asyncFunctions: ['sleep'],
};

const show = (value: unknown) => JSON.stringify(value, null, 2);

function explain(error: unknown): string {
  if (error instanceof SourceError) return `${error.message}${error.excerpt ? `\n${error.excerpt}` : ''}`;
  return error instanceof Error ? error.message : String(error);
}

async function runFile(parser: Parser, file: string): Promise<void> {
  const source = readFileSync(file, 'utf8');
  const program = await parser.program(source);
  if (values.ast) return console.log(show(program));
  if (values.js) return console.log(compileJavaScript(program, source).code);
  const code = compileBytecode(program, source);
  if (values.bytecode) return console.log(JSON.stringify(code));
  const printing = { ...options, onPrint: (line: string) => console.log(line) };
  let outcome: Outcome = run(code, printing);
  while (outcome.status === 'paused') {
    const [seconds] = outcome.call.args;
    await new Promise((done) => setTimeout(done, Number(seconds) * 1000 || 0));
    outcome = resume(outcome.state, null, printing);
  }
  if (outcome.status === 'failed') throw outcome.error;
  if (outcome.result !== null) console.log(show(outcome.result));
}

async function repl(parser: Parser): Promise<void> {
  const session = new HogSession(parser, { ...options, asyncFunctions: [] });
  const lines = createInterface({ input: process.stdin, output: process.stdout, prompt: 'hog> ' });
  // Input from a pipe ends before its lines are answered.
  let open = true;
  lines.on('close', () => {
    open = false;
  });
  lines.prompt();
  for await (const line of lines) {
    if (line.trim() === 'exit') break;
    const { printed, value, hasValue, error } = await session.line(line);
    for (const one of printed) console.log(one);
    if (error) console.log(explain(error));
    else if (hasValue) console.log(show(value));
    if (open) lines.prompt();
  }
  lines.close();
}

const parser = createParser();
try {
  const [file] = positionals;
  if (values.help) console.log(USAGE);
  else if (file === undefined) await repl(parser);
  else await runFile(parser, file);
} catch (error) {
  console.error(explain(error));
  process.exitCode = 1;
} finally {
  await parser.close();
}
