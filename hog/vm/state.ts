import type { Bytecode } from '../bytecode/index.ts';
import { HogFailure } from '../runtime/errors.ts';
import {
  type HogValue,
  isHogCallable,
  isHogClosure,
  isTuple,
  markTuple,
  newHogCallable,
} from '../runtime/values.ts';
import type { Frame, Handler, MachineState } from './frames.ts';

type Json = null | boolean | number | string | Json[] | { [key: string]: Json };

/**
 * A paused run as JSON. Values are stored in a table of nodes that refer to each other by index. Shared and cyclic
 * references therefore survive, and so do all types.
 */
export interface PausedState {
  version: 1;
  bytecode: Bytecode;
  nodes: Json[];
  values: Json[];
  frames: { closure: Json; chunk: string; ip: number; base: number }[];
  captured: { id: number; location: number; closed: boolean; value: Json }[];
  handlers: Handler[];
  declared: [name: string, ip: number, args: number][];
  asyncSteps: number;
  steps: number;
  milliseconds: number;
  maxMemory: number;
}

/**
 * Encodes values as JSON. A scalar is stored as it is, any other value as `{ "r": node }`. A number that JSON lacks is
 * `{ "n": text }`, a text with unpaired surrogates is `{ "s": codes }`.
 */
class Encoder {
  readonly nodes: Json[] = [];
  readonly #seen = new Map<object, number>();

  encode(value: HogValue): Json {
    if (typeof value === 'number') {
      return Number.isFinite(value) && !Object.is(value, -0)
        ? value
        : { n: Object.is(value, -0) ? '-0' : `${value}` };
    }
    if (typeof value === 'string') return value.isWellFormed() ? value : { s: [...value].flatMap(codes) };
    if (typeof value === 'boolean') return value;
    if (typeof value !== 'object' || value === null) return null;
    const known = this.#seen.get(value);
    if (known !== undefined) return { r: known };
    const index = this.nodes.push(null) - 1;
    this.#seen.set(value, index);
    this.nodes[index] = this.#node(value);
    return { r: index };
  }

  #node(value: object): Json {
    const all = (list: Iterable<HogValue>) => [...list].map((one) => this.encode(one));
    if (Array.isArray(value)) return [isTuple(value) ? 'tuple' : 'list', ...all(value)];
    if (value instanceof Map) return ['dict', ...[...value].map((pair) => all(pair))];
    if (isHogClosure(value)) return ['closure', this.encode(value.callable), value.upvalues];
    if (isHogCallable(value)) {
      const { __hogCallable__: kind, name = '', argCount, upvalueCount, ip, chunk } = value;
      return ['function', kind, name, argCount, upvalueCount, ip, chunk];
    }
    return ['object', ...Object.entries(value).map(([key, item]) => [key, this.encode(item)])];
  }
}

const codes = (character: string): number[] =>
  Array.from({ length: character.length }, (_, i) => character.charCodeAt(i));

class Decoder {
  readonly #nodes: Json[];
  readonly #made = new Map<number, HogValue>();

  constructor(nodes: Json[]) {
    this.#nodes = nodes;
  }

  decode(value: Json): HogValue {
    if (typeof value !== 'object' || value === null) return value;
    if (Array.isArray(value)) throw broken();
    if (typeof value.n === 'string') return Number(value.n);
    if (Array.isArray(value.s)) return String.fromCharCode(...(value.s as number[]));
    return this.#node(value.r as number);
  }

  #node(index: number): HogValue {
    if (this.#made.has(index)) return this.#made.get(index);
    const node = this.#nodes[index];
    if (!Array.isArray(node)) throw broken();
    const [kind, ...rest] = node;
    if (kind === 'list' || kind === 'tuple') {
      const list: HogValue[] = [];
      if (kind === 'tuple') markTuple(list);
      this.#made.set(index, list);
      for (const one of rest) list.push(this.decode(one));
      return list;
    }
    if (kind === 'dict') {
      const map = new Map<HogValue, HogValue>();
      this.#made.set(index, map);
      for (const pair of rest as Json[][])
        map.set(this.decode(pair[0] ?? null), this.decode(pair[1] ?? null));
      return map;
    }
    const value = this.#special(kind, rest);
    this.#made.set(index, value);
    if (kind === 'object') {
      for (const [key, item] of rest as [string, Json][]) {
        Object.defineProperty(value, key, {
          value: this.decode(item),
          enumerable: true,
          writable: true,
          configurable: true,
        });
      }
    }
    return value;
  }

  #special(kind: Json | undefined, rest: Json[]): object {
    if (kind === 'object') return {};
    if (kind === 'function') {
      const [type, name, argCount, upvalueCount, ip, chunk] = rest as [
        'local' | 'stl' | 'async',
        string,
        number,
        number,
        number,
        string,
      ];
      return newHogCallable(type, { name, argCount, upvalueCount, ip, chunk });
    }
    if (kind === 'closure') {
      const callable = this.decode(rest[0] ?? null);
      if (isHogCallable(callable)) return { __hogClosure__: true, callable, upvalues: rest[1] };
    }
    throw broken();
  }
}

const broken = () => new HogFailure('bytecode', 'The state of the paused run is damaged');

export function encodeState(
  bytecode: Bytecode,
  state: MachineState,
  used: { steps: number; milliseconds: number },
): PausedState {
  const encoder = new Encoder();
  const values = state.values.map((value) => encoder.encode(value));
  const frames = state.frames.map((frame) => ({ ...frame, closure: encoder.encode(frame.closure) }));
  const captured = state.captured.map((one) => ({ ...one, value: encoder.encode(one.value) }));
  const { handlers, declared, asyncSteps, maxMemory } = state;
  return {
    version: 1,
    bytecode,
    nodes: encoder.nodes,
    values,
    frames,
    captured,
    handlers,
    declared,
    asyncSteps,
    ...used,
    maxMemory,
  };
}

export function decodeState(paused: PausedState): MachineState {
  if (paused?.version !== 1 || !Array.isArray(paused.nodes) || !paused.frames?.length) throw broken();
  const decoder = new Decoder(paused.nodes);
  const frames = paused.frames.map((frame): Frame => {
    const closure = decoder.decode(frame.closure);
    if (!isHogClosure(closure)) throw broken();
    return { ...frame, closure };
  });
  return {
    frames,
    values: paused.values.map((value) => decoder.decode(value)),
    captured: paused.captured.map((one) => ({ ...one, value: decoder.decode(one.value) })),
    handlers: paused.handlers.map((one) => ({ ...one })),
    declared: paused.declared,
    asyncSteps: paused.asyncSteps,
    maxMemory: paused.maxMemory,
  };
}
