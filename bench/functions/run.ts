// `npm run bench -- functions` measures what it takes to save a function of 200 lines, at first sight and after one
// statement has changed, beside the official parser alone; and the programs of the templates on Sluice's machine, beside
// the reference machine.
import crypto from 'node:crypto';
import hogqlParser from '@posthog/hogql-parser';
import hogvm from '@posthog/hogvm';
import type { FunctionSource } from '../../functions/compile.ts';
import { createFunctionCompiler } from '../../functions/compiler.ts';
import { NO_SECRETS } from '../../functions/reads/secrets.ts';
import { completeGlobals } from '../../functions/rules/globals.ts';
import { createRunner } from '../../functions/runner.ts';
import { TEMPLATES } from '../../functions/templates/index.ts';
import type { Bytecode } from '../../hog/bytecode/index.ts';
import { regexExtract, regexMatch } from '../../hog/runtime/regex.ts';
import { resume, run } from '../../hog/vm/index.ts';

const ROUNDS = 20;
const MACHINE_ROUNDS = 4;
const MACHINE_MS = 150;
const external = { crypto, regex: { match: regexMatch, extract: regexExtract } };
const median = (times: number[]) =>
  times.toSorted((a, b) => a - b)[Math.floor(times.length / 2)] ?? Number.NaN;
const most = (times: number[]) => Math.max(...times);

/** A program of 200 lines that nobody has compiled before. `changed` is a value in one of its statements. */
function program(serial: number, changed: number): string {
  const lines = [`let serial := ${serial}`];
  for (let part = 0; lines.length < 194; part += 1) {
    lines.push(
      `let value_${part} := event.properties.amount_${part} ?? ${part === 3 ? changed : serial + part}`,
      `if (value_${part} > ${part} and event.event = 'paid ${serial}') {`,
      `  print(f'part ${part} of {event.distinct_id}: {value_${part}}')`,
      `  let body_${part} := {'n': value_${part}, 'who': person.properties.email, 'list': [1, 2, serial]}`,
      `  if (empty(inputs.url)) { return null } else { serial := serial + 1 }`,
      `  fetch(inputs.url, {'method': 'POST', 'body': body_${part}})`,
      '}',
      `fun name_${part}(a, b) { return concat(a, '${serial} ${part}', b ?? 'none') }`,
    );
  }
  return [...lines, 'return serial'].join('\n');
}

function sourceOf(hog: string): FunctionSource {
  const content = {
    ...{ hog, filters: { events: [{ id: '$pageview', type: 'events' }] }, masking: null, mappings: null },
    inputs_schema: [{ key: 'url', type: 'string' as const, required: true, secret: false, hidden: false }],
    inputs: { url: { value: 'https://example.com/{event.distinct_id}' } },
  };
  return {
    ...{ type: 'destination', content, secrets: NO_SECRETS, isEnabled: true, testAccounts: [], actions: [] },
    ...{ now: Date.now(), timezone: 'UTC' },
  };
}

async function timed(work: () => unknown): Promise<number> {
  const began = performance.now();
  await work();
  return performance.now() - began;
}

/** What saving takes: everything but the row. */
async function measureSaving() {
  const compiler = createFunctionCompiler();
  const parser = await hogqlParser();
  await compiler.compile(1, sourceOf(program(-1, 0)));
  const [first, again, official]: [number[], number[], number[]] = [[], [], []];
  for (let round = 0; round < ROUNDS; round += 1) {
    first.push(await timed(() => compiler.compile(1, sourceOf(program(round, 1)))));
    again.push(await timed(() => compiler.compile(1, sourceOf(program(round, 2)))));
    official.push(await timed(() => parser.parseProgram(program(round, 3))));
  }
  await compiler.close();
  return { first, again, official };
}

const EVENT = {
  ...{
    uuid: '018f0000-0000-7000-8000-000000000001',
    event: 'order paid',
    distinct_id: 'ada',
    elements_chain: '',
  },
  properties: { amount: 5, $ip: '81.2.69.142', $current_url: 'https://shop.test/?a=1' },
  timestamp: '2026-01-01T00:00:00.000Z',
};
const PERSON = { id: 'p', name: 'ada', url: '', properties: { email: 'ada@shop.test', first_name: 'Ada' } };
const ANSWER = { status: 200, body: { ok: true } };
const silent = { print: () => null, postHogCapture: () => null };

function runOurs(bytecode: Bytecode, globals: object): void {
  const options = { globals, functions: silent, asyncFunctions: ['fetch'], clock: Date.now };
  let outcome = run(bytecode, options);
  while (outcome.status === 'paused') outcome = resume(outcome.state, ANSWER, options);
}

function runReference(bytecode: Bytecode, globals: object): void {
  const options = { globals, functions: silent, asyncFunctions: { fetch: async () => null }, external };
  let result = hogvm.exec(bytecode, options as never);
  while (!result.finished && result.state && !result.error) {
    (result.state.stack as unknown[]).push(ANSWER);
    result = hogvm.exec(result.state as never, options as never);
  }
}

/** Runs per second of CPU time. It is hardly affected by other processes. */
function rate(work: () => void): number {
  const began = performance.now();
  const before = process.cpuUsage();
  let count = 0;
  for (; performance.now() - began < MACHINE_MS; count += 1) work();
  const { user, system } = process.cpuUsage(before);
  return (count / (user + system)) * 1e6;
}

/** The programs of templates: how many runs of Sluice's machine take the time of one of the reference machine. */
async function measureMachine() {
  const compiler = createFunctionCompiler();
  const runner = createRunner();
  const rows: { id: string; ratio: number; trial: number }[] = [];
  for (const { id, type, hog, inputs_schema: schemas } of TEMPLATES) {
    // The others call functions that the reference machine does not have.
    if (type !== 'destination') continue;
    const values = schemas.map((one): [string, { value: unknown }] => [
      one.key,
      { value: one.default ?? (one.type === 'string' ? 'https://example.com/x' : {}) },
    ]);
    const source = sourceOf(hog);
    const content = {
      ...source.content,
      inputs_schema: schemas,
      inputs: Object.fromEntries(values) as never,
    };
    const compiled = await compiler.compile(1, { ...source, content }).catch(() => undefined);
    if (!compiled?.bytecode) continue;
    const bytecode = compiled.bytecode as Bytecode;
    const facts = {
      project: { id: 1, name: 'Shop' },
      site: 'https://sluice.test',
      source: { id: 'f', name: 'f' },
    };
    const globals = completeGlobals({ event: EVENT, person: PERSON }, facts);
    const inputs = Object.fromEntries(values.map(([key, { value }]) => [key, value]));
    const all = { ...globals, inputs };
    const best = { ours: 0, reference: 0 };
    for (let round = 0; round < MACHINE_ROUNDS; round += 1) {
      best.ours = Math.max(
        best.ours,
        rate(() => runOurs(bytecode, all)),
      );
      best.reference = Math.max(
        best.reference,
        rate(() => runReference(bytecode, all)),
      );
    }
    const frame = { now: Date.now(), seed: 1 };
    const job = { bytecode, inputs: compiled.inputs, given: {}, globals, frame, isTransformation: false };
    const trials: number[] = [];
    for (let n = 0; n < ROUNDS; n += 1) trials.push(await timed(() => runner.begin(1, job)));
    rows.push({ id, ratio: best.ours / best.reference, trial: median(trials) });
  }
  await Promise.all([compiler.close(), runner.close()]);
  return rows;
}

const { first, again, official } = await measureSaving();
const line = (name: string, times: number[]) =>
  `| ${name} | ${median(times).toFixed(0)} | ${most(times).toFixed(0)} | ${(median(times) / median(official)).toFixed(2)} |`;
console.log('| saving a function of 200 lines | median ms | most ms | × the official parser alone |');
console.log('| --- | --- | --- | --- |');
console.log(line('at first sight', first));
console.log(line('after one statement changed', again));
console.log(line('the official parser alone', official));
const rows = await measureMachine();
console.log(
  '\n| template | × the rate of the reference machine | first step of a test run, median ms |\n| --- | --- | --- |',
);
for (const { id, ratio, trial } of rows) console.log(`| ${id} | ${ratio.toFixed(1)} | ${trial.toFixed(1)} |`);
const mean = Math.exp(rows.reduce((sum, { ratio }) => sum + Math.log(ratio), 0) / rows.length);
console.log(
  `\nGeometric mean of ${rows.length} templates: ${mean.toFixed(1)} × the rate of the reference machine.`,
);
process.exit(0);
