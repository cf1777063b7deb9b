// Makes one JavaScript text of the parts of the browser's runtime that some code needs. The parts are functions
// of this folder: their text is taken from the running program, so that nothing has to be built.
import { library } from '../../runtime/stl.ts';
import { writtenFunctions } from '../written.ts';
import * as calendar from './calendar.ts';
import * as data from './data.ts';
import * as dates from './dates.ts';
import { browserFunctions } from './functions.ts';
import * as json from './json.ts';
import * as operators from './operators.ts';
import * as texts from './texts.ts';
import * as values from './values.ts';

/** Everything a part may refer to, by name. */
const parts = new Map<string, string>(
  [values, calendar, dates, operators, texts, json, data].flatMap((module) =>
    Object.entries(module).flatMap(([name, part]): [string, string][] =>
      typeof part === 'function' ? [[name, textOf(part as Part)]] : [],
    ),
  ),
);

type Part = (...args: never[]) => unknown;

/** Where types were there is room, which means nothing. */
function textOf(part: Part): string {
  return part
    .toString()
    .replace(/^[ \t]*\/\/.*$/gm, '')
    .replace(/[ \t]+$/gm, '')
    .replace(/\n\s*/g, '\n');
}

export const isInBrowser = (name: string): boolean => Object.hasOwn(browserFunctions, name);

/** The text of a table like the server's, with what the code uses of it and these functions of the language. */
export function browserTable(code: string, names: string[]): string {
  const used = new Set([...code.matchAll(/\bR\.(\w+)/g)].map(([, name]) => name as string));
  const entries = [...used]
    .filter((name) => Object.hasOwn(operators.operators, name))
    .map((name) => `${name}: ${nameOrText(operators.operators[name] as Part)}`);
  const functions = names.map((name) => `${JSON.stringify(name)}: ${functionText(name)}`);
  const needed = new Set<string>();
  const need = (text: string) => {
    for (const [word] of text.matchAll(/[A-Za-z_$][\w$]*/g)) {
      const part = parts.get(word);
      if (part === undefined || needed.has(word)) continue;
      needed.add(word);
      need(part);
    }
  };
  for (const text of [...entries, ...functions, GLUE, ...GLUED]) need(text);
  const definitions = [...needed].map((name) => definition(name, parts.get(name) as string));
  return `(() => {
"use strict";
${definitions.join('\n')}
const library = {
${functions.join(',\n')}
};
${GLUE}
return { ${[...entries, ...GLUED].join(',\n')} };
})()`;
}

/** A part by its name, if it has one. */
const nameOrText = (part: Part): string => (parts.has(part.name) ? part.name : textOf(part));

const definition = (name: string, text: string): string =>
  /^(?:async )?function\b/.test(text) ? text : `const ${name} = ${text};`;

/** A function with the numbers of arguments it takes. */
function functionText(name: string): string {
  const native = library.get(name);
  const written = writtenFunctions.get(name)?.arity;
  const fewest = native?.minArgs ?? written ?? 0;
  const most = native ? native.maxArgs : (written ?? null);
  return `[${fewest}, ${most}, ${textOf(browserFunctions[name] as Part)}]`;
}

const GLUED = ['name', 'named', 'text', 'missing', 'run: runner'];

const GLUE = `
function name(run, name, args) {
const host = run.options.functions && Object.hasOwn(run.options.functions, name) ? run.options.functions[name] : null;
if (host) return toHog(host(...args.map((one) => toHost(one))));
if (!Object.hasOwn(library, name)) fail("Unsupported function call: " + name);
const [fewest, most, body] = library[name];
if (args.length < fewest) fail("Function " + name + " requires at least " + fewest + " arguments");
if (most !== null && args.length > most) fail("Function " + name + " requires at most " + most + " arguments");
takeStep(run);
const result = body(args, run, name);
return result === undefined ? null : result;
}
function named(wanted) {
return (run, args) => name(run, wanted, args);
}
function text(run, value) {
return typeof value === "string" && !run.options.functions ? value : name(run, "toString", [value]);
}
function missing(path) {
if (path.length > 1 || !Object.hasOwn(library, path[0])) fail("Global variable not found: " + path.join("."));
return newClosure("stl", path[0], library[path[0]][1] || 0, (run, args) => name(run, path[0], args));
}`;
