// Bundles the parts of the browser runtime that compiled code needs into one JavaScript text. The runtime is the plain
// JavaScript in browser/. It is type-checked and tested here, and browsers run it unchanged.
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { isNullable, library, strictFunctions } from '../runtime/stl.ts';
import { wantedBy } from './browser/arguments.js';
import { writtenFunctions } from './written.ts';

const FILES = ['values', 'arguments', 'calendar', 'dates', 'operators', 'calls'];
/** Each of these files exports a table of Hog functions. The table has the name of the file. */
const FUNCTION_FILES = ['texts', 'json', 'data', 'moments'];

/** JavaScript texts by name. */
type Texts = Map<string, string>;

interface Runtime {
  /** Internal functions, which operators and Hog functions call. */
  declarations: Texts;
  /** The operators that compiled code calls. */
  operators: Texts;
  /** The Hog functions that programs call by name. */
  functions: Texts;
}

const ENTRY = /^(\w+)(?:: ([\s\S]*))?,\s*$/;

/**
 * Reads a file of the runtime: its function declarations, and the entries of each table. It relies on the format of the
 * files: everything is exported, each `export` starts a line, and each entry of a table is indented by two spaces.
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

/** Returns the runtime. Reads its files on first use. */
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

/**
 * Returns JavaScript for a table like the server's runtime table. It contains the operators that the code uses, the
 * named Hog functions, and everything that these need.
 */
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

/** Returns the text of a library entry: the allowed numbers of arguments, the function, and what it wants. */
function withArguments(name: string, text: string): string {
  const native = library.get(name);
  const written = writtenFunctions.get(name)?.arity;
  const fewest = native?.minArgs ?? written ?? 0;
  const most = native ? native.maxArgs : (written ?? null);
  return `[${fewest}, ${most}, ${text}, ${JSON.stringify(wantedBy(name))}, ${strictFunctions.has(name)}, ${isNullable(name)}, ${!native}]`;
}
