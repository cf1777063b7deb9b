// `npm run bench -- hog` measures filters on the reference VM, on Sluice's VM and as JavaScript; the times of the
// parser; lists that programs build; and the compilation of filter documents and texts for all three back ends. results.json beside this file
// contains the recorded figures (`--write` replaces them).
import crypto from 'node:crypto';
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import hogvm from '@posthog/hogvm';
import { build } from '../../hog/ast/index.ts';
import { compileBytecode } from '../../hog/bytecode/index.ts';
import { compileJavaScript } from '../../hog/javascript/index.ts';
import { createParser } from '../../hog/parser/index.ts';
import { regexExtract, regexMatch } from '../../hog/runtime/regex.ts';
import { createSchema, printStatement, selection } from '../../hog/sql/index.ts';
import { run } from '../../hog/vm/index.ts';
import { measureDocument } from './filter-bench.ts';
import { events, filters } from './filters.ts';
import { measureChanges, measureLists } from './list-bench.ts';

const MEASURE_MS = 500;
const external = { crypto, regex: { match: regexMatch, extract: regexExtract } };

/** Measures events per second of CPU time, the best of five. CPU time is hardly affected by other processes. */
function rate(match: (event: object) => unknown): number {
  let best = 0;
  for (let round = 0; round < 6; round++) {
    const start = performance.now();
    const before = process.cpuUsage();
    let count = 0;
    while (performance.now() - start < MEASURE_MS) {
      for (const event of events) match(event);
      count += events.length;
    }
    const { user, system } = process.cpuUsage(before);
    // The first round warms up.
    if (round > 0) best = Math.max(best, (count / (user + system)) * 1e6);
  }
  return Math.round(best);
}

const rows = Object.entries(filters).map(([name, node]) => {
  const code = compileBytecode(node);
  const evaluate = compileJavaScript(node).evaluator();
  const reference = (globals: object) => hogvm.exec(code, { globals, external }).result as unknown;
  const machine = (globals: object) => {
    const outcome = run(code, { globals });
    return outcome.status === 'finished' ? outcome.result : null;
  };
  for (const event of events) {
    const answers = [reference(event), machine(event), evaluate(event)];
    if (new Set(answers).size !== 1) throw new Error(`${name}: ${JSON.stringify(answers)}`);
  }
  const rates = { reference: rate(reference), machine: rate(machine), javaScript: rate(evaluate) };
  const row = {
    filter: name,
    ...rates,
    javaScriptToReference: Number((rates.javaScript / rates.reference).toFixed(1)),
    javaScriptToMachine: Number((rates.javaScript / rates.machine).toFixed(1)),
  };
  console.log(row);
  return row;
});

const parser = createParser({ programTimeoutMs: 60_000 });
// This starts both parser threads.
await Promise.all([parser.expression('warm + up'), parser.expression('warm + too')]);
const ms = async (act: () => Promise<unknown>) => {
  const start = performance.now();
  await act();
  return Number((performance.now() - start).toFixed(3));
};
const terms = (seed: number) =>
  Array.from({ length: 50 }, (_, i) => `properties.p${seed}_${i} = 'v${i}'`).join(' or ');
const firsts: number[] = [];
for (let i = 0; i < 20; i++) firsts.push(await ms(() => parser.expression(terms(i))));
const known = terms(0);
const cachedStart = performance.now();
for (let i = 0; i < 10_000; i++) await parser.expression(known);
const cachedMicroseconds = Number(((performance.now() - cachedStart) / 10).toFixed(2));
const line = (i: number) => [`let a${i} := f(event.x, ${i}) + 1`, `if (a${i} > 3) { print(a${i}, [1, 2]) }`];
const program = Array.from({ length: 500 }, (_, i) => line(i).join('\n')).join('\n');

let worstBlock = 0;
let last = performance.now();
const ticker = setInterval(() => {
  worstBlock = Math.max(worstBlock, performance.now() - last - 5);
  last = performance.now();
}, 5);
const before = process.cpuUsage();
const thousandLines = await ms(() => parser.program(program));
const thousandLinesCpu = Math.round(process.cpuUsage(before).user / 1_000);
clearInterval(ticker);
const tree = await parser.program(program);
const compileStart = performance.now();
compileBytecode(tree, program);
const bytecodeMs = Number((performance.now() - compileStart).toFixed(2));
const jsStart = performance.now();
compileJavaScript(tree, program);
const javaScriptMs = Number((performance.now() - jsStart).toFixed(2));
const fifty = await parser.expression(terms(0));
const printing = { schema: createSchema('on event'), projectId: 1, timezone: 'UTC' };
const backEnds = () => {
  compileBytecode(fifty);
  compileJavaScript(fifty);
  printStatement(selection({ table: 'events', select: [build.field('uuid')], where: fifty }), printing);
};
for (let i = 0; i < 50; i++) backEnds();
const backEndsStart = performance.now();
for (let i = 0; i < 100; i++) backEnds();
const texts = {
  fiftyTermsFirstMs: firsts.toSorted((a, b) => a - b)[10],
  fiftyTermsCachedMicroseconds: cachedMicroseconds,
  fiftyTermsToAllThreeMs: Number(((performance.now() - backEndsStart) / 100).toFixed(3)),
  thousandLinesParseMs: thousandLines,
  thousandLinesProcessorMs: thousandLinesCpu,
  thousandLinesWorstBlockMs: Number(worstBlock.toFixed(1)),
  thousandLinesToBytecodeMs: bytecodeMs,
  thousandLinesToJavaScriptMs: javaScriptMs,
};
const lists = await measureLists(parser);
await parser.close();
console.log(texts);
console.table(lists);
const changes = await measureChanges();
console.log('a function of 200 lines, in ms:', changes);
const document = measureDocument();
console.log('a document of 50 conditions, in ms:', document);
if (process.argv.includes('--write')) {
  const file = path.join(import.meta.dirname, 'results.json');
  writeFileSync(
    file,
    `${JSON.stringify({ node: process.version, filters: rows, texts, lists, changes, document }, null, 2)}\n`,
  );
}
