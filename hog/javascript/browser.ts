// Puts together one JavaScript text of those parts of the browser's runtime that some code needs. The runtime is the
// files of browser/: plain JavaScript, which is checked and tested here and runs in browsers as it stands there.
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { library } from '../runtime/stl.ts';
import { writtenFunctions } from './written.ts';

const FILES = ['values', 'calendar', 'dates', 'operators', 'calls'];
/** Each of these has a table of functions of the language, which is called like the file. */
const FUNCTION_FILES = ['texts', 'json', 'data', 'moments'];

/** Texts by name. */
type Texts = Map<string, string>;

interface Runtime {
  /** Functions that others use. */
  declarations: Texts;
  /** Operators of the language, as compiled code calls them. */
  operators: Texts;
  /** Functions of the language. */
  functions: Texts;
}

const ENTRY = /^(\w+)(?:: ([\s\S]*))?,\s*$/;

/**
 * The declarations of a file, and the entries of its tables by the name of the table. Everything there is exported, and
 * the formatter gives each export a line that begins with `export`, each entry a line with two spaces in front.
 */
function readFile(name: string): { declarations: Texts; tables: Map<string, Texts> } {
  const text = readFileSync(path.join(import.meta.dirname, 'browser', `${name}.js`), 'utf8')
    .replaceAll(/\/\*\*[\s\S]*?\*\/|^ *\/\/.*$/gm, '')
    .replaceAll(/[ \t]+$/gm, '');
  const declarations: Texts = new Map();
  const tables = new Map<string, Texts>();
  for (const part of text.split(/^export /m).slice(1)) {
    const table = /^const (\w+) = \{\n([\s\S]*)^\};/m.exec(part);
    if (!table) {
      const [, called = ''] = /^function (\w+)/.exec(part) ?? [];
      declarations.set(called, compact(part));
      continue;
    }
    const [, called = '', body = ''] = table;
    const entries = body.split(/^ {2}(?=\w)/m).flatMap((entry): [string, string][] => {
      const [, key, value = key] = ENTRY.exec(entry) ?? [];
      return key === undefined || value === undefined ? [] : [[key, compact(value)]];
    });
    tables.set(called, new Map(entries));
  }
  return { declarations, tables };
}

const compact = (text: string): string => text.replaceAll(/\n\s*/g, '\n').trim();

let read: Runtime | undefined;

/** The files are read once, at first use. */
function runtime(): Runtime {
  if (read) return read;
  const files = [...FILES, ...FUNCTION_FILES].map(readFile);
  const tables = new Map(files.flatMap((file) => [...file.tables]));
  read = {
    declarations: new Map(files.flatMap((file) => [...file.declarations])),
    operators: tables.get('operators') ?? new Map(),
    functions: new Map(FUNCTION_FILES.flatMap((name) => [...(tables.get(name) ?? [])])),
  };
  return read;
}

export const isInBrowser = (name: string): boolean => runtime().functions.has(name);

/** The text of a table like the server's, with what the code uses of it and these functions of the language. */
export function browserTable(code: string, names: string[]): string {
  const { declarations, operators, functions } = runtime();
  const used = new Set([...code.matchAll(/\bR\.(\w+)/g)].map(([, name]) => name as string));
  const entries = [...used]
    .filter((name) => operators.has(name))
    .map((name) => `${name}: ${operators.get(name)}`);
  const along = names.map(
    (name) => `${JSON.stringify(name)}: ${withArguments(name, functions.get(name) as string)}`,
  );
  const needed = new Map<string, string>();
  const need = (text: string) => {
    for (const [word] of text.matchAll(/[A-Za-z_$][\w$]*/g)) {
      const part = declarations.get(word);
      if (part === undefined || needed.has(word)) continue;
      needed.set(word, part);
      need(part);
    }
  };
  const calls = [...entries, '...callsOf(library)', 'run: runner'];
  for (const text of [...calls, ...along]) need(text);
  return `(() => {
"use strict";
${[...needed.values()].join('\n')}
const library = {
${along.join(',\n')}
};
return { ${calls.join(',\n')} };
})()`;
}

/** A function of the language with the numbers of arguments that it takes. */
function withArguments(name: string, text: string): string {
  const native = library.get(name);
  const written = writtenFunctions.get(name)?.arity;
  const fewest = native?.minArgs ?? written ?? 0;
  const most = native ? native.maxArgs : (written ?? null);
  return `[${fewest}, ${most}, ${text}]`;
}
