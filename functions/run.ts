// Runs filters, inputs and programs. It is called in threads, which somebody ends when they take too long.
import type { Bytecode } from '../hog/bytecode/index.ts';
import { type HostOptions, hostFunctions } from '../hog/host/index.ts';
import { type Limits, type Outcome, type PausedState, resume, run } from '../hog/vm/index.ts';
import { MOST_DEPTH, withDepth } from '../values/function-depth.ts';
import {
  type MaskJob,
  type Match,
  type MatchJob,
  maskKey,
  matches,
  PROGRAM_LIMITS,
  type Surroundings,
  surroundingsIn,
} from './evaluate.ts';
import { isHeavy } from './filter.ts';
import { inOrder, nameInput, valueOfInput } from './input-values.ts';
import type { InputSchema, StoredInputs } from './rules/definition.ts';
import { depthOfGlobals } from './rules/depth.ts';
import type { Frame } from './rules/frame.ts';
import type { Globals } from './rules/globals.ts';
import { MOST_PRINTED, printedText } from './rules/logs.ts';
import type { MaskKey } from './rules/masking.ts';
import type { Scanned } from './rules/tally.ts';
import { type ScanJob, scan } from './scan.ts';

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
  /** How many events the program has asked to capture in the steps before. */
  captured: number;
}

/** Steps of one function for several events. */
export interface StepsJob {
  kind: 'steps';
  bytecode: Bytecode;
  inputs: StoredInputs;
  items: readonly StepItem[];
}

export interface StepItem {
  globals: Globals;
  frame: Frame;
  given: Record<string, unknown>;
  /** Answers that the program had already, when it ran before. It gets them again. */
  answers: readonly unknown[];
  /** Absent: the program begins. */
  paused?: { state: PausedState; result: unknown; captured: number; inputs: unknown };
}

/** A step of one item. `inputs` are the values of the inputs as the program sees them. */
export type ItemStep = Step & { inputs: unknown };

export type RunJob = MatchJob | BeginJob | ResumeJob | MaskJob | ScanJob | StepsJob;

/** A step of a program: until it ends, or until it waits for the host. */
export type Step = {
  /** Each line as text. */
  printed: string[];
  /** The events that the program asks to capture. */
  captured: unknown[];
  steps: number;
  milliseconds: number;
  memory: number;
} & (
  | { status: 'finished'; result: unknown }
  | {
      status: 'failed';
      error: string;
      where: 'inputs' | 'program';
      /** The element of the code at which the program failed. */
      at: number | null;
      isHeavy?: boolean;
    }
  | { status: 'waits'; call: { name: string; args: unknown[] }; state: PausedState }
);
/** The first step also says what the program sees. */
export type Begun = Step & { globals: Globals };

export type RunAnswer = Match[] | Begun | Step | MaskKey | Scanned[][] | ItemStep[];

const ASYNC = ['fetch', 'sleep'];
/** Lines that a step keeps, and characters of each: more than a log shows, because secrets are still to be hidden. */
const MOST_KEPT = MOST_PRINTED + 1;
const LONGEST_KEPT = 200_000;

/** `place` finds the locations of addresses for transformations. */
export function work(job: RunJob, place?: HostOptions['place']): RunAnswer {
  switch (job.kind) {
    case 'match': {
      const around = surroundingsIn(job.frame);
      return job.filters.map((bytecode) => matches(bytecode, job.globals, around));
    }
    case 'mask':
      return maskKey(job.bytecode, job.globals, surroundingsIn(job.frame));
    case 'scan':
      return scan(job);
    case 'begin':
      return begin(job, place);
    case 'steps':
      return stepsOf(job);
    case 'resume':
      return resumed(job);
  }
}

/** How long the steps of one job take together, in milliseconds, before the rest is left: others wait for the thread. */
const JOB_MILLISECONDS = 100;
/** About how many bytes the paused programs of one job take together: all of them go to another thread at once. */
const JOB_BYTES = 8 * 1024 * 1024;

/** Runs steps of the first items, at least of one. */
function stepsOf(job: StepsJob): ItemStep[] {
  const until = performance.now() + JOB_MILLISECONDS;
  const steps: ItemStep[] = [];
  let bytes = 0;
  for (const item of job.items) {
    const step = stepOf(job, item);
    steps.push(step);
    if (step.status === 'waits') bytes += step.memory;
    if (performance.now() > until || bytes > JOB_BYTES) break;
  }
  return steps;
}

/** What a step may use, and how its time is measured. */
interface Room {
  limits: Partial<Limits>;
  clock?: () => number;
}
const WHOLE_ROOM: Room = { limits: PROGRAM_LIMITS };

/** Runs a step of an item in the thread of the caller. `isHeavy` in the answer: it needs more room than it was given. */
export const stepWithin = (
  job: Pick<StepsJob, 'bytecode' | 'inputs'>,
  item: StepItem,
  room: Room,
): ItemStep => stepOf(job, item, { ...room, limits: { ...PROGRAM_LIMITS, ...room.limits } });

const surroundingsOf = (frame: Frame, { clock }: Room, before?: number): Surroundings => {
  const around = surroundingsIn(frame, before);
  return clock ? { ...around, clock } : around;
};

function begin(job: BeginJob, place: HostOptions['place'], room = WHOLE_ROOM): Begun {
  const inputs: Record<string, unknown> = {};
  // Texts that name the person are empty where there is none. Otherwise each would end the run.
  const globals = { ...(job.isTransformation ? {} : { person: null }), ...job.globals, inputs };
  const around = surroundingsOf(job.frame, room);
  let current = '';
  try {
    for (const [key, input] of inOrder(job.inputs)) {
      current = key;
      inputs[key] = Object.hasOwn(job.given, key) ? job.given[key] : valueOfInput(input, globals, around);
    }
  } catch (failure) {
    const error = nameInput(current, failure);
    if (!(error instanceof Error)) throw error;
    const failed = { status: 'failed', error: error.message, where: 'inputs', at: null } as const;
    return { ...failed, printed: [], captured: [], steps: 0, milliseconds: 0, memory: 0, globals };
  }
  const begun = { ...job, globals, around, captured: 0 };
  return { ...step((options) => run(job.bytecode, options), { ...begun, room }, place), globals };
}

/**
 * Runs an item until it ends or waits. One that ran before in another process runs again from its beginning: its clock, its
 * random numbers and what it got are the same, so it comes to the same place.
 */
function stepOf(
  { bytecode, inputs }: Pick<StepsJob, 'bytecode' | 'inputs'>,
  item: StepItem,
  room = WHOLE_ROOM,
): ItemStep {
  const { globals: given, frame, paused } = item;
  const job = { bytecode, frame, isTransformation: false };
  if (paused) {
    const globals = { person: null, ...given, inputs: paused.inputs };
    const next = resumed({ ...job, globals, ...paused, state: { ...paused.state, bytecode } }, room);
    return { ...withoutCode(next), inputs: paused.inputs };
  }
  let step: Step & { globals: Globals } = begin(
    { kind: 'begin', ...job, inputs, given: item.given, globals: given },
    undefined,
    room,
  );
  const printed = [...step.printed];
  const captured = [...step.captured];
  const { globals } = step;
  for (const result of item.answers) {
    if (step.status !== 'waits') break;
    const next = { ...job, globals, state: step.state, result, captured: captured.length };
    step = { ...resumed(next, room), globals };
    printed.push(...step.printed);
    captured.push(...step.captured);
  }
  const { globals: _globals, ...rest } = step;
  return { ...withoutCode(rest as Step), printed, captured, inputs: globals.inputs };
}

/** Leaves out what is known already where the step goes to, the code, and what nobody looks at there, the result. */
function withoutCode(step: Step): Step {
  if (step.status === 'finished') return { ...step, result: null };
  return step.status === 'waits' ? { ...step, state: { ...step.state, bytecode: [] } } : step;
}

const resumed = (job: Omit<ResumeJob, 'kind'>, room = WHOLE_ROOM): Step =>
  step((options) => resume(job.state, job.result, options), {
    ...{ ...job, room },
    around: surroundingsOf(job.frame, room, job.state.asyncSteps),
  });

interface Runnable extends Pick<ResumeJob, 'isTransformation' | 'globals' | 'captured'> {
  around: Surroundings;
  room: Room;
}

function step(
  proceed: (options: Parameters<typeof run>[1]) => Outcome,
  { around, isTransformation, globals, captured: before, room }: Runnable,
  place?: HostOptions['place'],
): Step {
  const printed: string[] = [];
  const captured: unknown[] = [];
  const outcome = proceed({
    ...{ ...around, globals, limits: room.limits },
    asyncFunctions: isTransformation ? [] : ASYNC,
    functions: {
      ...hostFunctions(place ? { place } : {}),
      print: (...args) => {
        if (printed.length < MOST_KEPT) printed.push(printedText(args).slice(0, LONGEST_KEPT));
        return null;
      },
      postHogCapture: (given) => {
        if (isTransformation) throw new Error('posthogCapture is not supported in transformations');
        const event = capturedEvent(given, globals);
        if (!event) {
          printed.push(CAPTURED_TOO_OFTEN);
          return null;
        }
        captured.push(event);
        if (before + captured.length > 1)
          throw new Error('postHogCapture was called more than once. Only one call is allowed per function');
        return null;
      },
    },
  });
  const { steps, milliseconds, maxMemory: memory } = outcome.usage;
  const used = { printed, captured, steps, milliseconds, memory };
  if (outcome.status === 'finished') return { ...used, status: 'finished', result: outcome.result };
  if (outcome.status === 'failed') {
    const { at, error } = outcome;
    return { ...used, status: 'failed', error: error.message, where: 'program', at, isHeavy: isHeavy(error) };
  }
  return { ...used, status: 'waits', call: outcome.call, state: outcome.state };
}

const CAPTURED_TOO_OFTEN =
  `postHogCapture was called from an event that already executed this function ${MOST_DEPTH} times previously. ` +
  'To prevent unbounded infinite loops, the event was not captured.';

/**
 * Completes an event that a program captures. Events count the functions that led to them, so that no circle is endless:
 * undefined if there were too many.
 */
function capturedEvent(given: unknown, globals: Globals): Record<string, unknown> | undefined {
  const asked = (typeof given === 'object' && given !== null ? given : {}) as Record<string, unknown>;
  if (!asked.event) throw new Error("[HogFunction] - postHogCapture call missing 'event' property");
  const event = globals.event as { distinct_id?: string };
  const person = globals.person as { id?: string } | undefined;
  const depth = depthOfGlobals(globals);
  if (depth >= MOST_DEPTH) return undefined;
  return {
    event: asked.event,
    distinct_id: asked.distinct_id || event.distinct_id || person?.id,
    properties: withDepth(asked.properties as Record<string, unknown>, depth + 1),
  };
}

/** Returns the value of an input that names an integration. */
export const integrationInputs = (schemas: readonly InputSchema[]): readonly InputSchema[] =>
  schemas.filter(({ type }) => type === 'integration');
