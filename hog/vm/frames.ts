import type { Bytecode } from '../bytecode/index.ts';
import type { Surroundings } from '../runtime/stl.ts';
import { type HogClosure, type HogValue, newHogCallable, newHogClosure } from '../runtime/values.ts';
import type { Captured } from './stack.ts';
import { codeStart } from './validate.ts';

export interface Frame {
  closure: HogClosure;
  chunk: string;
  ip: number;
  base: number;
}

/** A `try` block that is running: where to continue after an error. */
export interface Handler {
  frames: number;
  height: number;
  catchIp: number;
}

/** The complete state of a run, except for the code and what the host provides. */
export interface MachineState {
  frames: Frame[];
  values: HogValue[];
  captured: Captured[];
  handlers: Handler[];
  declared: [name: string, ip: number, args: number][];
  asyncSteps: number;
  maxMemory: number;
}

export interface Environment {
  globals: object;
  functions: ReadonlyMap<string, (...args: unknown[]) => unknown>;
  asyncFunctions: ReadonlySet<string>;
  around: Surroundings;
  catchRuntimeErrors: boolean;
}

export type Stop = { call: { name: string; args: unknown[] } } | { result: HogValue };

export function freshState(code: Bytecode): MachineState {
  const callable = newHogCallable('local', { name: '', argCount: 0, upvalueCount: 0, ip: 1, chunk: 'root' });
  return {
    frames: [{ closure: newHogClosure(callable), chunk: 'root', ip: codeStart(code), base: 0 }],
    values: [],
    captured: [],
    handlers: [],
    declared: [],
    asyncSteps: 0,
    maxMemory: 0,
  };
}
