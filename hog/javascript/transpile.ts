import type { Expr, Program } from '../ast/index.ts';
import { compileBytecode } from '../bytecode/index.ts';
import { SourceError } from '../errors.ts';
import { library } from '../runtime/stl.ts';
import { browserTable, isInBrowser } from './browser.ts';
import { emitEntry } from './emit-statement.ts';
import { Emitter } from './emitter.ts';
import { writtenFunctions } from './written.ts';

/** How compiled code is stored for browsers: it runs by itself, and brings along the functions it names. */
export interface Transpiled {
  lang: 'ts';
  code: string;
  stl: string[];
}

/**
 * An expression whose value is a function of the globals: `(globals, { functions, onPrint, maxSteps }) => result`.
 * It holds everything it needs, and errors of the program are thrown.
 */
export function transpile(node: Program | Expr, source?: string): Transpiled {
  const { code, stl } = transpileAll([node], source);
  return { lang: 'ts', code: `${code}[0]`, stl };
}

/** The same for several at once, a list of functions that share what they need. */
export function transpileAll(nodes: (Program | Expr)[], source?: string): Transpiled {
  const parts = nodes.map((node) => part(node, source));
  const stl = [...new Set(parts.flatMap((one) => one.stl))].toSorted();
  const entries = parts.map(({ code }) => `R.run((() => {\n${code}\n})())`);
  const table = browserTable(parts.map(({ code }) => code).join('\n'), stl);
  return { lang: 'ts', code: `((R) => [${entries.join(',\n')}])(${table})`, stl };
}

function part(node: Program | Expr, source?: string): { code: string; stl: string[] } {
  // Refuses what no back end takes.
  compileBytecode(node, source);
  const emitter = new Emitter();
  const code = emitted(emitter, node, source);
  const own = [...code.matchAll(/R\.name\(E, "(\w+)"/g)].map(([, name]) => name as string);
  if (code.includes('R.text(')) own.push('toString');
  const named = [...emitter.calledNames, ...emitter.globalNames].filter(
    (name) => library.has(name) || writtenFunctions.has(name),
  );
  const missing = named.find((name) => !isInBrowser(name));
  if (missing) throw new SourceError('unsupported', `${missing}() is not available in browsers`);
  return { code, stl: [...new Set([...named, ...own])] };
}

function emitted(emitter: Emitter, node: Program | Expr, source?: string): string {
  try {
    return emitEntry(emitter, node);
  } catch (error) {
    if (error instanceof SourceError) throw source === undefined ? error : error.in(source);
    if (error instanceof RangeError) {
      throw new SourceError('too_deep', 'The source is too complex to become JavaScript');
    }
    throw error;
  }
}
