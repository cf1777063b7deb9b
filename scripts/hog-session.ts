// The state of a REPL between lines: variables as data, functions as the statements that declared them.
import { build, type Expr, type Program, type Statement } from '../hog/ast/index.ts';
import { compileBytecode } from '../hog/bytecode/index.ts';
import { SourceError } from '../hog/errors.ts';
import type { Parser } from '../hog/parser/index.ts';
import { type Outcome, type RunOptions, run } from '../hog/vm/index.ts';

const { constant, dict, field } = build;
/** The global that contains the variables of earlier lines. */
const REMEMBERED = '__session';

export interface Answer {
  printed: string[];
  /** The value of the line, if it ends in an expression or a return. */
  value: unknown;
  hasValue: boolean;
  error: Error | null;
  /** True if the line ends too early. It may be valid with more lines. */
  incomplete: boolean;
}

export class HogSession {
  readonly #parser: Parser;
  readonly #options: RunOptions;
  #variables: Record<string, unknown> = {};
  readonly #functions = new Map<string, Statement>();

  constructor(parser: Parser, options: RunOptions) {
    this.#parser = parser;
    this.#options = options;
  }

  async line(source: string): Promise<Answer> {
    const nothing: Answer = { printed: [], value: null, hasValue: false, error: null, incomplete: false };
    try {
      const program = await this.#parser.program(source);
      const last = program.declarations.at(-1);
      const code = compileBytecode(this.#wrap(program), source);
      const globals = { ...this.#options.globals, [REMEMBERED]: this.#variables };
      const outcome = run(code, { ...this.#options, globals });
      return { ...nothing, ...this.#remember(outcome, program), hasValue: endsInValue(last) };
    } catch (error) {
      const incomplete = endsTooEarly(error, source);
      return { ...nothing, incomplete, error: error instanceof Error ? error : new Error(String(error)) };
    }
  }

  /**
   * Wraps a line in a program. The program first restores the variables of earlier lines, and finally returns all
   * variables.
   */
  #wrap(program: Program): Program {
    const made = program.declarations.flatMap((one) =>
      one.kind === 'variableDeclaration' || one.kind === 'function' ? [one.name] : [],
    );
    const earlier = Object.keys(this.#variables).filter((name) => !made.includes(name));
    const functions = [...this.#functions].filter(([name]) => !made.includes(name)).map(([, one]) => one);
    const body = [...program.declarations];
    const last = body.at(-1);
    let value: Expr = constant(null);
    if (last?.kind === 'exprStatement' || (last?.kind === 'returnStatement' && last.expr)) {
      value = last.expr as Expr;
      body.pop();
    }
    const data = program.declarations.flatMap((one) =>
      one.kind === 'variableDeclaration' && one.expr?.kind !== 'lambda' ? [one.name] : [],
    );
    const names = [...earlier, ...data];
    const variables = dict(names.map((name) => [constant(name), field(name)]));
    return {
      kind: 'program',
      declarations: [
        ...earlier.map(
          (name): Statement => ({
            kind: 'variableDeclaration',
            name,
            expr: field(REMEMBERED, name),
          }),
        ),
        ...functions,
        ...body,
        {
          kind: 'returnStatement',
          expr: dict([
            [constant('value'), value],
            [constant('variables'), variables],
          ]),
        },
      ],
    };
  }

  #remember(outcome: Outcome, program: Program): Partial<Answer> {
    const { printed } = outcome;
    if (outcome.status === 'failed') return { printed, error: outcome.error };
    if (outcome.status === 'paused') {
      return {
        printed,
        error: new Error(`${outcome.call.name}() is an async function, which the REPL cannot call`),
      };
    }
    for (const one of program.declarations) if (isFunction(one)) this.#functions.set(one.name, one);
    const { result } = outcome;
    if (typeof result === 'object' && result !== null && 'variables' in result && 'value' in result) {
      this.#variables = { ...this.#variables, ...(result.variables as Record<string, unknown>) };
      return { printed, value: result.value };
    }
    // An earlier `return` ended the line.
    return { printed, value: result };
  }
}

/** Returns whether an error is at the end of the source, or in a string that is not closed. */
function endsTooEarly(error: unknown, source: string): boolean {
  if (!(error instanceof SourceError) || error.code !== 'syntax' || !error.span) return false;
  return error.span.start >= source.trimEnd().length;
}

type NamedFunction = Extract<Statement, { kind: 'function' | 'variableDeclaration' }>;

const isFunction = (one: Statement): one is NamedFunction =>
  one.kind === 'function' || (one.kind === 'variableDeclaration' && one.expr?.kind === 'lambda');

const endsInValue = (last: Statement | undefined): boolean =>
  last?.kind === 'exprStatement' || last?.kind === 'returnStatement';
