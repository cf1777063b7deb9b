import type { Expr, Program } from '../../../hog/ast/index.ts';
import { compileBytecode } from '../../../hog/bytecode/index.ts';
import { SourceError } from '../../../hog/errors.ts';
import { compileJavaScript } from '../../../hog/javascript/index.ts';
import { run } from '../../../hog/vm/index.ts';

export interface Seen {
  status: string;
  result?: string;
  error?: string;
  printed: string;
}

const LIMITS = { maxSteps: 50_000, maxMemory: 8_000_000 };
const LIMIT_CODES = new Set(['steps', 'memory', 'time', 'depth']);

/** JSON that keeps NaN, infinities, -0 and what is not there apart. */
export function exact(value: unknown): string {
  return JSON.stringify(value, (_key, item: unknown) => {
    if (typeof item === 'number' && (!Number.isFinite(item) || Object.is(item, -0))) {
      return `number ${Object.is(item, -0) ? '-0' : item}`;
    }
    return item === undefined ? 'undefined' : item;
  });
}

export interface Comparison {
  machine: Seen;
  javaScript: Seen;
  /** One of the two stopped at a limit, which they need not reach together. */
  limited: boolean;
  /** Neither was run: the compilers refuse it, or only the machine takes it. */
  refused: boolean;
}

const clock = () => 1_709_210_000_000;
const around = { clock, limits: LIMITS, random: () => 0.25 };

export function compareBoth(
  node: Program | Expr,
  globals: Record<string, unknown>,
  catchRuntimeErrors: boolean,
): Comparison {
  const empty: Seen = { status: 'refused', printed: '' };
  try {
    const compiled = compileJavaScript(node);
    const options = { ...around, catchRuntimeErrors };
    const machine = run(compileBytecode(node), { ...options, globals });
    const javaScript = compiled.run(globals, options);
    const limited = [machine, javaScript].some(
      (one) => one.status === 'failed' && LIMIT_CODES.has(one.error.code),
    );
    return { machine: seen(machine), javaScript: seen(javaScript), limited, refused: false };
  } catch (error) {
    if (error instanceof SourceError) {
      return { machine: empty, javaScript: empty, limited: false, refused: true };
    }
    throw error;
  }
}

type Any = ReturnType<typeof run> | ReturnType<ReturnType<typeof compileJavaScript>['run']>;

function seen(outcome: Any): Seen {
  const printed = outcome.printed.join('\n');
  if (outcome.status === 'finished') {
    return { status: 'finished', result: exact(outcome.result), printed };
  }
  if (outcome.status === 'paused') return { status: 'paused', printed };
  const { code, message, type, payload } = outcome.error;
  return { status: 'failed', error: exact([code, message, type, payload]), printed };
}
