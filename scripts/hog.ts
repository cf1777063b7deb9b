// `npm run hog -- file.hog` runs a program; --bytecode, --js and --ast print its compiled form instead. Without a file,
// it starts a REPL. `--globals file.json` sets the globals.
import { readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { parseArgs } from 'node:util';
import { compileBytecode } from '../hog/bytecode/index.ts';
import { SourceError } from '../hog/errors.ts';
import { compileJavaScript } from '../hog/javascript/index.ts';
import { createParser, type Parser } from '../hog/parser/index.ts';
import { type Outcome, type RunOptions, resume, run } from '../hog/vm/index.ts';
import { HogSession } from './hog-session.ts';

const USAGE = `npm run hog -- [file.hog] [--bytecode | --js | --ast] [--globals file.json]
Runs a Hog program (- is the standard input), or prints its bytecode, its JavaScript or its syntax tree.
Without a file, it starts a REPL. A statement can span several lines; an empty line ends it.`;

/** An error in the arguments. The usage is printed with it. */
class UsageError extends Error {}

interface Call {
  file: string | null;
  show: 'bytecode' | 'js' | 'ast' | null;
  globals: object;
  help: boolean;
}

function readCall(): Call {
  const { values, positionals } = parse();
  const shows = (['bytecode', 'js', 'ast'] as const).filter((one) => values[one]);
  if (shows.length > 1) throw new UsageError(`--${shows.join(' and --')} exclude each other`);
  if (positionals.length > 1) throw new UsageError(`One file at a time, not ${positionals.length}`);
  const [file = null] = positionals;
  const [show = null] = shows;
  if (show !== null && file === null) throw new UsageError(`--${show} needs a file`);
  return { file, show, globals: readGlobals(values.globals), help: values.help };
}

function parse() {
  const flag = { type: 'boolean', default: false } as const;
  const options = { bytecode: flag, js: flag, ast: flag, help: flag, globals: { type: 'string' } } as const;
  try {
    return parseArgs({ allowPositionals: true, options });
  } catch (error) {
    // Only the first sentence is useful; the rest is advice about quoting.
    throw new UsageError(error instanceof Error ? (error.message.split('. ')[0] as string) : String(error));
  }
}

function readGlobals(file: string | undefined): object {
  if (file === undefined) return {};
  let globals: unknown;
  try {
    globals = JSON.parse(read(file));
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    throw new Error(`${file} is not JSON: ${error.message.replace(/\s+/g, ' ')}`);
  }
  if (typeof globals !== 'object' || globals === null || Array.isArray(globals)) {
    throw new Error(`${file} is not a JSON object`);
  }
  return globals;
}

const REASONS: Record<string, string> = {
  ENOENT: 'there is no such file',
  EISDIR: 'it is a directory',
  EACCES: 'permission denied',
};

function read(file: string): string {
  try {
    return readFileSync(file === '-' ? 0 : file, 'utf8');
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    throw new Error(`Cannot read ${file}: ${REASONS[code ?? ''] ?? message}`);
  }
}

const json = (value: unknown) => JSON.stringify(value, null, 2);

function explain(error: unknown): string {
  if (error instanceof SourceError) return `${error.message}${error.excerpt ? `\n${error.excerpt}` : ''}`;
  if (error instanceof UsageError) return `${error.message}\n\n${USAGE}`;
  return error instanceof Error ? error.message : String(error);
}

async function runFile(parser: Parser, file: string, { show }: Call, options: RunOptions): Promise<void> {
  const source = read(file);
  const program = await parser.program(source);
  if (show === 'ast') return console.log(json(program));
  if (show === 'js') return console.log(compileJavaScript(program, source).code);
  const code = compileBytecode(program, source);
  if (show === 'bytecode') return console.log(JSON.stringify(code));
  const printing = { ...options, onPrint: (line: string) => console.log(line) };
  let outcome: Outcome = run(code, printing);
  while (outcome.status === 'paused') {
    const [seconds] = outcome.call.args;
    await new Promise((done) => setTimeout(done, Number(seconds) * 1000 || 0));
    outcome = resume(outcome.state, null, printing);
  }
  if (outcome.status === 'failed') throw outcome.error;
  if (outcome.result !== null) console.log(json(outcome.result));
}

async function repl(parser: Parser, options: RunOptions): Promise<void> {
  const session = new HogSession(parser, { ...options, asyncFunctions: [] });
  const lines = createInterface({ input: process.stdin, output: process.stdout, prompt: 'hog> ' });
  // Piped input can end before its lines are answered.
  let open = true;
  lines.on('close', () => {
    open = false;
  });
  const answer = async (source: string, whole: boolean): Promise<boolean> => {
    const { printed, value, hasValue, error, incomplete } = await session.line(source);
    if (incomplete && !whole) return false;
    for (const one of printed) console.log(one);
    if (error) console.log(explain(error));
    else if (hasValue) console.log(json(value));
    return true;
  };
  let pending = '';
  lines.prompt();
  for await (const line of lines) {
    if (pending === '' && line.trim() === 'exit') break;
    const source = pending === '' ? line : `${pending}\n${line}`;
    const done = await answer(source, pending !== '' && line.trim() === '');
    pending = done ? '' : source;
    lines.setPrompt(done ? 'hog> ' : '...> ');
    if (open) lines.prompt();
  }
  if (pending !== '') await answer(pending, true);
  lines.close();
}

async function main(): Promise<void> {
  const call = readCall();
  if (call.help) return console.log(USAGE);
  const options: RunOptions = {
    globals: call.globals,
    clock: Date.now,
    random: Math.random,
    asyncFunctions: ['sleep'],
  };
  const parser = createParser();
  try {
    if (call.file === null) await repl(parser, options);
    else await runFile(parser, call.file, call, options);
  } finally {
    await parser.close();
  }
}

// The reader of the output may close it early, as `head` does.
process.stdout.on('error', (error: NodeJS.ErrnoException) => process.exit(error.code === 'EPIPE' ? 0 : 1));
try {
  await main();
} catch (error) {
  console.error(explain(error));
  process.exitCode = error instanceof UsageError ? 2 : 1;
}
