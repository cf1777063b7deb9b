import type { Expr, Program } from '../ast/index.ts';
import { compileBytecode } from '../bytecode/index.ts';
import { SourceError } from '../errors.ts';
import { library } from '../runtime/stl.ts';
import { browserTable, isInBrowser } from './browser.ts';
import { emitEntry } from './emit-statement.ts';
import { Emitter } from './emitter.ts';
import { ownersOf } from './owners.ts';
import { writtenFunctions } from './written.ts';

/**
 * Compiled code as it is stored for browsers. It contains the library functions that it calls, so it runs on its own.
 */
export interface Transpiled {
  lang: 'ts';
  code: string;
  stl: string[];
}

/**
 * Compiles to a JavaScript expression whose value is a function: `(globals, { functions, onPrint, maxSteps }) =>
 * result`. The code is self-contained. Errors of the program are thrown.
 */
export function transpile(node: Program | Expr, source?: string): Transpiled {
  const { code, stl } = transpileAll([node], source);
  return { lang: 'ts', code: `${code}[0]`, stl };
}

/**
 * Compiles several programs or expressions to one JavaScript expression. Its value is a list of functions that share
 * the runtime.
 */
export function transpileAll(nodes: (Program | Expr)[], source?: string): Transpiled {
  const parts = nodes.map((node) => part(node, source));
  const stl = [...new Set(parts.flatMap((one) => one.stl))].toSorted();
  const entries = parts.map(({ code }) => `R.run((() => {\n${code}\n})())`);
  const table = browserTable(parts.map(({ code }) => code).join('\n'), stl);
  return { lang: 'ts', code: `((R) => [${entries.join(',\n')}])(${table})`, stl };
}

function part(node: Program | Expr, source?: string): { code: string; stl: string[] } {
  // The bytecode compiler refuses programs that no back end supports.
  compileBytecode(node, source);
  const emitter = new Emitter(ownersOf(node));
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
      throw new SourceError('too_deep', 'The source is too complex to compile to JavaScript');
    }
    throw error;
  }
}
