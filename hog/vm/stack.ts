import { HogFailure } from '../runtime/errors.ts';
import type { Meter } from '../runtime/meter.ts';
import { costOf, type HogValue } from '../runtime/values.ts';

/** A variable that closures share. Until its scope ends its value is on the stack. */
export interface Captured {
  id: number;
  location: number;
  closed: boolean;
  value: HogValue;
}

/** Bytes for a captured variable itself. */
const CAPTURE_COST = 64;

/** The values of all frames, each with its price, and the variables captured from among them. */
export class Stack {
  readonly values: HogValue[];
  readonly captured: Map<number, Captured>;
  /** Captured variables whose value is still on the stack, by location. */
  readonly #open: Map<number, Captured>;
  readonly #costs: number[] = [];
  readonly #meter: Meter;
  #memory = 0;
  maxMemory: number;
  /** Where the running frame starts: nothing below it can be popped. */
  base = 0;

  constructor(meter: Meter, values: HogValue[], captured: Captured[], maxMemory: number) {
    this.#meter = meter;
    this.values = values;
    this.maxMemory = maxMemory;
    this.captured = new Map(captured.map((one) => [one.id, one]));
    this.#open = new Map(captured.filter((one) => !one.closed).map((one) => [one.location, one]));
    for (const value of values) {
      const cost = costOf(value, meter);
      this.#costs.push(cost);
      this.grow(cost);
    }
    for (const one of captured) if (one.closed) this.grow(costOf(one.value, meter));
  }

  get height(): number {
    return this.values.length;
  }

  grow(bytes: number): void {
    this.#memory += bytes;
    if (this.#memory <= this.maxMemory) return;
    this.maxMemory = this.#memory;
    if (this.#memory > this.#meter.limits.maxMemory) this.#meter.outOfMemory(this.#memory);
  }

  push(value: HogValue): void {
    const cost = typeof value === 'number' || typeof value === 'boolean' ? 8 : costOf(value, this.#meter);
    this.values.push(value === undefined ? null : value);
    this.#costs.push(cost);
    this.grow(cost);
  }

  pop(): HogValue {
    if (this.values.length <= this.base) {
      throw new HogFailure('bytecode', 'Invalid HogQL bytecode, stack is empty, can not pop');
    }
    this.#memory -= this.#costs.pop() as number;
    return this.values.pop();
  }

  /** Takes the top values, lowest first. */
  take(count: number): HogValue[] {
    if (count > this.values.length - this.base) {
      throw new HogFailure('bytecode', 'Invalid bytecode: stack underflow');
    }
    for (let i = 0; i < count; i++) this.#memory -= this.#costs.pop() as number;
    return this.values.splice(this.values.length - count);
  }

  #place(slot: number): number {
    const place = this.base + slot;
    if (place >= this.values.length) {
      throw new HogFailure('bytecode', `Invalid bytecode: there is no variable ${slot}`);
    }
    return place;
  }

  /** Copies a variable to the top; its price is known. */
  load(slot: number): void {
    const place = this.#place(slot);
    const cost = this.#costs[place] as number;
    this.values.push(this.values[place]);
    this.#costs.push(cost);
    this.grow(cost);
  }

  /** Moves the top into a variable. */
  store(slot: number): void {
    const cost = this.#costs.at(-1) as number;
    const value = this.pop();
    const place = this.#place(slot);
    this.grow(cost - (this.#costs[place] as number));
    this.values[place] = value;
    this.#costs[place] = cost;
  }

  #set(place: number, value: HogValue): void {
    const cost = costOf(value, this.#meter);
    const before = this.#costs[place] as number;
    this.values[place] = value;
    this.#costs[place] = cost;
    this.grow(cost - before);
  }

  /** Drops everything from `height` up; captured variables among it move off the stack. */
  drop(height: number): void {
    if (this.#open.size > 0) {
      for (const [location, one] of this.#open) {
        if (location < height) continue;
        one.closed = true;
        one.value = this.values[location] ?? null;
        this.#open.delete(location);
        // What a closure keeps is never given back: nobody knows when it is let go.
        this.grow(this.#costs[location] ?? 0);
      }
    }
    for (let i = height; i < this.#costs.length; i++) this.#memory -= this.#costs[i] as number;
    this.values.length = height;
    this.#costs.length = height;
  }

  /** The id of the captured variable at a slot of the running frame. */
  capture(slot: number): number {
    const location = this.base + slot;
    const known = this.#open.get(location);
    if (known) return known.id;
    const created: Captured = { id: this.captured.size + 1, location, closed: false, value: null };
    this.captured.set(created.id, created);
    this.#open.set(location, created);
    this.grow(CAPTURE_COST);
    return created.id;
  }

  #capturedAt(id: number | undefined): Captured {
    const one = id === undefined ? undefined : this.captured.get(id);
    if (!one) throw new HogFailure('bytecode', 'Invalid bytecode: there is no such captured variable');
    return one;
  }

  readCaptured(id: number | undefined): HogValue {
    const one = this.#capturedAt(id);
    return one.closed ? one.value : (this.values[one.location] ?? null);
  }

  writeCaptured(id: number | undefined, value: HogValue): void {
    const one = this.#capturedAt(id);
    if (one.closed) {
      this.grow(costOf(value, this.#meter) - costOf(one.value, this.#meter));
      one.value = value;
    } else if (one.location < this.values.length) this.#set(one.location, value);
  }
}
