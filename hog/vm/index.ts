// Runs bytecode. The result depends only on the code, the globals and the options.
import type { Bytecode } from '../bytecode/index.ts';
import { asFailure, type HogFailure } from '../runtime/errors.ts';
import { DEFAULT_LIMITS, type Limits, Meter } from '../runtime/meter.ts';
import { costOf, toHog, toHost } from '../runtime/values.ts';
import { type Environment, freshState, type MachineState } from './frames.ts';
import { Machine } from './machine.ts';
import { decodeState, encodeState, type PausedState } from './state.ts';
import { prepare } from './validate.ts';

export { type HogErrorCode, HogFailure } from '../runtime/errors.ts';
export { DEFAULT_LIMITS, type Limits } from '../runtime/meter.ts';
export type { PausedState } from './state.ts';

export interface RunOptions {
  /** Plain data. The program sees own properties only. */
  globals?: object;
  /** Functions of the host. They take and return plain data. They take precedence over library functions. */
  functions?: Record<string, (...args: unknown[]) => unknown>;
  /** The names of async functions. A call of one pauses the run; the host then provides the result. */
  asyncFunctions?: Iterable<string>;
  limits?: Partial<Limits>;
  /** Returns milliseconds, by which the limit of time is measured. Without a clock there is none. */
  clock?: () => number;
  /** Returns milliseconds since 1970, for `now()` and `today()`. By default this is the clock; without either they fail. */
  now?: () => number;
  /** Returns a number from 0 (included) to 1 (excluded), for `randomFloat()` and `generateUUIDv4()`. */
  random?: () => number;
  /** Receives each printed line at once. The outcome also contains all lines. */
  onPrint?: (line: string) => void;
  /** Lets `catch` receive errors that end the run in the reference VM: bad arguments, bad JSON, index 0. */
  catchRuntimeErrors?: boolean;
}

export interface Usage {
  steps: number;
  milliseconds: number;
  maxMemory: number;
  asyncSteps: number;
}

export type Outcome =
  | { status: 'finished'; result: unknown; printed: string[]; usage: Usage }
  | {
      status: 'failed';
      error: HogFailure;
      /** The element of the code at which the run failed, for `placeIn`. Null: it did not begin. */
      at: number | null;
      printed: string[];
      usage: Usage;
    }
  | {
      status: 'paused';
      call: { name: string; args: unknown[] };
      state: PausedState;
      printed: string[];
      usage: Usage;
    };

/** Runs a program from its start. Never throws because of the program. */
export function run(bytecode: Bytecode, options: RunOptions = {}): Outcome {
  return proceed(bytecode, null, options);
}

/** Continues a paused run, in this process or another. The globals and functions must be given again. */
export function resume(state: PausedState, result: unknown, options: RunOptions = {}): Outcome {
  return proceed(state?.bytecode, { state, result }, options);
}

function proceed(
  bytecode: Bytecode,
  paused: { state: PausedState; result: unknown } | null,
  options: RunOptions,
): Outcome {
  const printed: string[] = [];
  const meter = new Meter(
    { ...DEFAULT_LIMITS, ...options.limits },
    options.clock ?? null,
    paused?.state ?? undefined,
  );
  const env: Environment = {
    globals: options.globals ?? {},
    functions: new Map(Object.entries(options.functions ?? {})),
    asyncFunctions: new Set(options.asyncFunctions ?? []),
    catchRuntimeErrors: options.catchRuntimeErrors ?? false,
    around: {
      meter,
      clock: options.now ?? options.clock ?? null,
      random: options.random ?? null,
      print: (line) => {
        printed.push(line);
        options.onPrint?.(line);
      },
    },
  };
  let machine: Machine | null = null;
  const usage = (): Usage => ({
    steps: meter.steps,
    milliseconds: meter.milliseconds,
    maxMemory: machine?.stack.maxMemory ?? 0,
    asyncSteps: machine?.asyncSteps ?? 0,
  });
  try {
    const code = prepare(bytecode);
    const state: MachineState = paused ? decodeState(paused.state) : freshState(code);
    if (paused) state.values.push(toHog(paused.result));
    machine = new Machine(code, state, env);
    const stop = machine.run();
    if ('result' in stop) {
      costOf(stop.result, meter);
      return { status: 'finished', result: toHost(stop.result), printed, usage: usage() };
    }
    const saved = encodeState(bytecode, machine.state, {
      steps: meter.steps,
      milliseconds: meter.milliseconds,
    });
    return { status: 'paused', call: stop.call, state: saved, printed, usage: usage() };
  } catch (error) {
    return { status: 'failed', error: asFailure(error), at: machine?.at ?? null, printed, usage: usage() };
  }
}
