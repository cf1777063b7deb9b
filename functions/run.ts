// Runs filters, inputs and programs. It is called in threads, which somebody ends when they take too long.
import type { Bytecode } from '../hog/bytecode/index.ts';
import { type HostOptions, hostFunctions } from '../hog/host/index.ts';
import { renderLiquid } from '../hog/liquid/index.ts';
import { type Limits, type Outcome, type PausedState, resume, run } from '../hog/vm/index.ts';
import type { InputSchema, StoredInputs } from './rules/definition.ts';
import type { Globals } from './rules/globals.ts';

/** What makes a run repeatable: with the same frame, `now()` and random numbers are the same. */
export interface Frame {
  /** Milliseconds. */
  now: number;
  seed: number;
}

export interface MatchJob {
  kind: 'match';
  /** The bytecode of filters. Null: they could not be compiled. */
  filters: (Bytecode | null)[];
  globals: Globals;
  frame: Frame;
}
export type Match = { matched: boolean; error?: string };

export interface BeginJob {
  kind: 'begin';
  bytecode: Bytecode;
  /** In their order, with the secret ones. */
  inputs: StoredInputs;
  /** Values that stand for inputs, such as those of integrations. */
  given: Record<string, unknown>;
  globals: Globals;
  frame: Frame;
  isTransformation: boolean;
  /** The file with the locations of addresses. */
  geoip?: string | undefined;
}

export interface ResumeJob extends Omit<BeginJob, 'kind' | 'inputs' | 'given'> {
  kind: 'resume';
  state: PausedState;
  /** What the function that the program waits for returns. */
  result: unknown;
}

export interface MaskJob {
  kind: 'mask';
  bytecode: Bytecode;
  globals: Globals;
  frame: Frame;
}

export type RunJob = MatchJob | BeginJob | ResumeJob | MaskJob;

/** A step of a program: until it ends, or until it waits for the host. */
export type Step = {
  printed: unknown[][];
  /** The events that the program asks to capture. */
  captured: unknown[];
  steps: number;
  milliseconds: number;
  memory: number;
} & (
  | { status: 'finished'; result: unknown }
  | { status: 'failed'; error: string; where: 'inputs' | 'program' }
  | { status: 'waits'; call: { name: string; args: unknown[] }; state: PausedState }
);
/** The first step also says what the program sees. */
export type Begun = Step & { globals: Globals };

export type RunAnswer = Match[] | Begun | Step | { key: string | null; error?: string };

/** Of the whole program, without what it waits for. Its time is what counts, so steps have no limit of their own. */
const PROGRAM: Partial<Limits> = {
  maxSteps: Number.MAX_SAFE_INTEGER,
  maxMilliseconds: 550,
  maxMemory: 64 * 1024 * 1024,
  maxAsyncSteps: 5,
};
const TEMPLATE: Partial<Limits> = { ...PROGRAM, maxAsyncSteps: 0 };

/** Random numbers that follow from a seed. */
function randomOf(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 0x1_0000_0000;
  };
}

/**
 * A clock that begins at the time of the frame, so that limits of time hold. It counts the processor time of this thread:
 * a program that waits for the processor behind others is not slow.
 */
function clockOf({ now }: Frame): () => number {
  const began = process.threadCpuUsage();
  return () => {
    const { user, system } = process.threadCpuUsage(began);
    return now + Math.floor((user + system) / 1000);
  };
}

const ASYNC = ['fetch', 'sleep'];

const optionsOf = (globals: Globals, frame: Frame, limits: Partial<Limits>) => ({
  globals,
  limits,
  clock: clockOf(frame),
  random: randomOf(frame.seed),
});

/** `place` finds the locations of addresses for transformations. */
export function work(job: RunJob, place?: HostOptions['place']): RunAnswer {
  switch (job.kind) {
    case 'match':
      return job.filters.map((bytecode) => matches(bytecode, job));
    case 'mask':
      return maskKey(job);
    case 'begin':
      return begin(job, place);
    case 'resume':
      return step((options) => resume(job.state, job.result, options), job, job.globals);
  }
}

/** Only true is a match: a filter that ends in 1 does not match. */
function matches(bytecode: Bytecode | null, { globals, frame }: MatchJob): Match {
  if (!bytecode) {
    return { matched: false, error: 'Filters were not compiled correctly and so could not be executed' };
  }
  const outcome = run(bytecode, optionsOf(globals, frame, TEMPLATE));
  if (outcome.status === 'finished') return { matched: outcome.result === true };
  return { matched: false, error: errorOf(outcome) };
}

function maskKey({ bytecode, globals, frame }: MaskJob): { key: string | null; error?: string } {
  const outcome = run(bytecode, optionsOf(globals, frame, { ...TEMPLATE, maxMilliseconds: 50 }));
  if (outcome.status !== 'finished') return { key: null, error: errorOf(outcome) };
  const { result } = outcome;
  return { key: result ? (typeof result === 'string' ? result : JSON.stringify(result)) : null };
}

const errorOf = (outcome: Outcome): string =>
  outcome.status === 'failed'
    ? outcome.error.message
    : 'The code waits for something, which it may not do here';

class InputError extends Error {}

function begin(job: BeginJob, place: HostOptions['place']): Begun {
  const inputs: Record<string, unknown> = {};
  // Texts that name the person are empty where there is none. Otherwise each would end the run.
  const globals = { ...(job.isTransformation ? {} : { person: null }), ...job.globals, inputs };
  try {
    for (const [key, input] of inOrder(job.inputs)) {
      inputs[key] = Object.hasOwn(job.given, key) ? job.given[key] : valueOfInput(input, globals, job.frame);
    }
  } catch (error) {
    if (!(error instanceof Error)) throw error;
    const failed = { status: 'failed', error: error.message, where: 'inputs' } as const;
    return { ...failed, printed: [], captured: [], steps: 0, milliseconds: 0, memory: 0, globals };
  }
  return { ...step((options) => run(job.bytecode, options), job, globals, place), globals };
}

/** Sorts inputs by their order. The keys of an object that look like numbers lose theirs. */
const inOrder = (inputs: StoredInputs) =>
  Object.entries(inputs).toSorted(([, a], [, b]) => (a.order ?? -1) - (b.order ?? -1));

function valueOfInput(input: StoredInputs[string], globals: Globals, frame: Frame): unknown {
  const { value, bytecode, templating } = input;
  if (templating === 'liquid') return liquid(value, globals, frame);
  return bytecode === undefined ? value : evaluated(bytecode, globals, frame);
}

function liquid(value: unknown, globals: Globals, frame: Frame): unknown {
  if (typeof value === 'string') return renderLiquid(value, globals, { now: new Date(frame.now) });
  if (Array.isArray(value)) return value.map((one) => liquid(one, globals, frame));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, liquid(one, globals, frame)]));
}

const isCode = (value: unknown): value is Bytecode =>
  Array.isArray(value) && (value[0] === '_H' || value[0] === '_h');

/** The key of an entry whose value is spread into the dictionary. The other entries win. */
const EXTEND = '$$_extend_object';

function evaluated(code: unknown, globals: Globals, frame: Frame): unknown {
  if (isCode(code)) {
    const outcome = run(code, optionsOf(globals, frame, TEMPLATE));
    if (outcome.status === 'finished') return outcome.result;
    throw new InputError(errorOf(outcome));
  }
  if (Array.isArray(code)) return code.map((one) => evaluated(one, globals, frame));
  if (typeof code !== 'object' || code === null) return code;
  const values = Object.fromEntries(
    Object.entries(code).map(([key, one]) => [key, evaluated(one, globals, frame)]),
  );
  if (!Object.hasOwn(values, EXTEND)) return values;
  const { [EXTEND]: base, ...own } = values;
  return typeof base === 'object' && base !== null && !Array.isArray(base) ? { ...base, ...own } : own;
}

type Runnable = Pick<BeginJob, 'frame' | 'isTransformation'>;

function step(
  proceed: (options: Parameters<typeof run>[1]) => Outcome,
  { frame, isTransformation }: Runnable,
  globals: Globals,
  place?: HostOptions['place'],
): Step {
  const printed: unknown[][] = [];
  const captured: unknown[] = [];
  const outcome = proceed({
    ...optionsOf(globals, frame, PROGRAM),
    asyncFunctions: isTransformation ? [] : ASYNC,
    functions: {
      ...hostFunctions(place ? { place } : {}),
      print: (...args) => {
        printed.push(args);
        return null;
      },
      postHogCapture: (given) => {
        if (isTransformation) throw new Error('posthogCapture is not supported in transformations');
        captured.push(capturedEvent(given, globals));
        if (captured.length > 1)
          throw new Error('postHogCapture was called more than once. Only one call is allowed per function');
        return null;
      },
    },
  });
  const { steps, milliseconds, maxMemory: memory } = outcome.usage;
  const used = { printed, captured, steps, milliseconds, memory };
  if (outcome.status === 'finished') return { ...used, status: 'finished', result: outcome.result };
  if (outcome.status === 'failed') {
    return { ...used, status: 'failed', error: outcome.error.message, where: 'program' };
  }
  return { ...used, status: 'waits', call: outcome.call, state: outcome.state };
}

const COUNT = '$hog_function_execution_count';
const MOST_EXECUTIONS = 10;

/** Completes an event that a program captures. Events count the functions that led to them, so that no circle is endless. */
function capturedEvent(given: unknown, globals: Globals): Record<string, unknown> {
  const asked = (typeof given === 'object' && given !== null ? given : {}) as Record<string, unknown>;
  if (!asked.event) throw new Error("[HogFunction] - postHogCapture call missing 'event' property");
  const event = globals.event as { distinct_id?: string; properties?: Record<string, unknown> };
  const person = globals.person as { id?: string } | undefined;
  const count = Number(event.properties?.[COUNT] ?? 0) || 0;
  if (count >= MOST_EXECUTIONS) {
    throw new Error(
      `postHogCapture was called from an event that already executed this function ${MOST_EXECUTIONS} times previously. ` +
        'To prevent unbounded infinite loops, the event was not captured.',
    );
  }
  return {
    event: asked.event,
    distinct_id: asked.distinct_id || event.distinct_id || person?.id,
    properties: { ...(asked.properties as object), [COUNT]: count + 1 },
  };
}

/** Returns the value of an input that names an integration. */
export const integrationInputs = (schemas: readonly InputSchema[]): readonly InputSchema[] =>
  schemas.filter(({ type }) => type === 'integration');
