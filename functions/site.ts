// Functions that run in browsers: their JavaScript is served as one expression that needs nothing else.
import { Script } from 'node:vm';
import { transform } from 'sucrase';
import type { Expr } from '../hog/ast/index.ts';
import { lineExcerpt, SourceError } from '../hog/errors.ts';
import { type Transpiled, transpile, transpileAll } from '../hog/javascript/index.ts';
import { FunctionError } from './rules/definition.ts';

/** Where a text is a template, its tree takes the place of the text. */
export class Template {
  readonly tree: Expr;

  constructor(tree: Expr) {
    this.tree = tree;
  }
}

/** The values of inputs in their order. */
export type SiteInputs = [key: string, value: unknown][];

export interface SiteMapping {
  inputs: SiteInputs;
  filters: Expr;
  isDisabled: boolean;
}

/** What a function for browsers is made of, beside its program. */
interface SiteParts {
  inputs: SiteInputs;
  filters: Expr;
  /** Null: the function has none, and runs once for each event. */
  mappings: SiteMapping[] | null;
}

export const siteTemplate = (tree: Expr): Transpiled => transpile(tree);

/** Turns a TypeScript module into the body of a function that has `exports` and `module`. */
function javascriptOf(source: string): string {
  try {
    const { code } = transform(source, {
      transforms: ['typescript', 'imports'],
      disableESTransforms: true,
      production: true,
    });
    return code;
  } catch (error) {
    throw new FunctionError('hog', 'Error in TypeScript code', { reason: faultOf(error, source) });
  }
}

/** Says what is wrong with a TypeScript module and where, as errors of Hog do. */
function faultOf(error: unknown, source: string): string {
  if (error instanceof RangeError) return 'The code is nested too deep.';
  const { message, pos } = error as Error & { pos?: number };
  if (pos === undefined) return message;
  const sentence = message.replace(/ \(\d+:\d+\)$/, '');
  return new SourceError('syntax', sentence, source, { start: pos, end: pos }).withExcerpt;
}

/** What ends a script element, or changes how its end is found, with the backslashes before it. */
const ENDS_SCRIPT = /(?<!\\)(\\*)<(?=\/script|!--)/gi;

/** Escapes in texts, patterns and comments of code what would end a script element around it. */
const inScript = (code: string): string =>
  code.replace(
    ENDS_SCRIPT,
    (_found, slashes: string) =>
      // If their number is odd, the last one escapes the bracket. The escape below has its own.
      `${slashes.length % 2 === 1 ? slashes.slice(1) : slashes}\\x3c`,
  );

/**
 * Refuses code that no browser could read: it would take all other functions of the page with it. `source` is the module
 * in it, which follows `head`.
 */
function requireReadable(code: string, head: string, source: string): void {
  try {
    new Script(`(${code}\n)`);
  } catch (error) {
    const { message, stack = '' } = error as Error;
    const line = Number(/:(\d+)\n/.exec(stack)?.[1]) - head.split('\n').length;
    const text = source.split(LINE_BREAK)[line];
    const reason = text === undefined ? message : `${message} (line ${line + 1})\n${lineExcerpt(text)}`;
    throw new FunctionError('hog', 'Error in TypeScript code', { reason });
  }
}

/** What ends a line of JavaScript. */
const LINE_BREAK = /\r\n|[\n\r\u2028\u2029]/;

/** Writes a value as JavaScript. Templates become calls of compiled expressions, whose trees are added to `trees`. */
function written(value: unknown, trees: Expr[]): string {
  if (value instanceof Template) return `at(${trees.push(value.tree) - 1}, globals)`;
  if (Array.isArray(value)) return `[${value.map((one) => written(one, trees)).join(', ')}]`;
  if (typeof value !== 'object' || value === null) return literal(value);
  const entries = Object.entries(value).map(([key, one]) => `[${literal(key)}]: ${written(one, trees)}`);
  return `{${entries.join(', ')}}`;
}

/** JSON that is also JavaScript, within a script element too. */
const literal = (value: unknown): string =>
  (JSON.stringify(value) ?? 'null')
    .replaceAll('<', '\\u003c')
    .replaceAll('\u2028', '\\u2028')
    .replaceAll('\u2029', '\\u2029');

/** Writes a function that computes inputs one after the other, since an input may read those before it. */
function writtenInputs(inputs: SiteInputs, trees: Expr[]): string {
  const steps = inputs.map(
    ([key, value]) => `compute(globals, inputs, ${literal(key)}, () => (${written(value, trees)}));`,
  );
  return `(globals, inputs) => {\nglobals = { ...globals, inputs };\n${steps.join('\n')}\nreturn inputs;\n}`;
}

const writtenFilter = (tree: Expr, trees: Expr[]): string =>
  `(globals) => at(${trees.push(tree) - 1}, globals) === true`;

/**
 * Builds the expression that a page evaluates: a function that returns `{ init }`. `init({ posthog, callback })` loads
 * the function and returns `{ processEvent }`.
 */
export function siteProgram(source: string, { inputs, filters, mappings }: SiteParts): string {
  const trees: Expr[] = [];
  const common = writtenInputs(inputs, trees);
  const matches = writtenFilter(filters, trees);
  const mapped =
    mappings
      ?.filter(({ isDisabled }) => !isDisabled)
      .map(
        (one) =>
          `{ inputs: ${writtenInputs(one.inputs, trees)}, matches: ${writtenFilter(one.filters, trees)} }`,
      ) ?? null;
  let code: string;
  try {
    code = trees.length > 0 ? transpileAll(trees).code : '[]';
  } catch (error) {
    if (!(error instanceof SourceError)) throw error;
    throw new FunctionError('inputs', `The inputs and filters cannot run in browsers: ${error.message}`);
  }
  const head = `(function () {
const compiled = ${code};
const at = (index, globals) => compiled[index](globals, {});
const compute = (globals, inputs, key, value) => {
try { inputs[key] = value(); } catch (error) {
inputs[key] = null;
// While a function loads there is no event, and an input that reads one is no fault.
if (globals.event) console.error('[Sluice] The input ' + key + ' could not be computed.', error);
}
};
const buildInputs = ${common};
const matches = ${matches};
const mappings = ${mapped === null ? 'null' : `[${mapped.join(', ')}]`};
const source = (() => {
const exports = {};
const module = { exports };
`;
  const program = inScript(`${head}${javascriptOf(source)}
return module.exports;
})();
const filterGlobals = ({ event, person, groups }) => ({
...groups, ...event, person, pdi: { distinct_id: event && event.distinct_id, person },
});
function run(globals, posthog) {
if (typeof source.onEvent !== 'function') return;
const shown = filterGlobals(globals);
if (!matches(shown)) return;
const failed = (error) => console.error('[Sluice] A function could not handle an event.', error);
const call = (inputs) => {
try {
const done = source.onEvent({ ...globals, inputs, posthog });
if (done && typeof done.then === 'function') done.then(undefined, failed);
} catch (error) { failed(error); }
};
const inputs = buildInputs(globals, {});
if (mappings === null) { call(inputs); return; }
for (const one of mappings) if (one.matches(shown)) call(one.inputs(globals, { ...inputs }));
}
function init({ posthog, callback }) {
const done = (ok) => { if (callback) callback(ok); };
const processEvent = (globals) => run(globals, posthog);
if (typeof source.onLoad !== 'function') { done(true); return { processEvent }; }
const person = { properties: (posthog && posthog.get_property && posthog.get_property('$stored_person_properties')) || {} };
const loading = source.onLoad({ inputs: buildInputs({ person }, {}), posthog });
if (loading && typeof loading.then === 'function') loading.then(() => done(true), () => done(false));
else done(true);
return { processEvent };
}
return { init };
})`);
  requireReadable(program, head, source);
  return program;
}
