import { HogFailure } from '../runtime/errors.ts';
import type { Meter } from '../runtime/meter.ts';
import { sizeOf } from '../runtime/sizes.ts';
import { costOf, type HogValue } from '../runtime/values.ts';

/** A captured variable, which closures share. Its value is on the stack until its scope ends. */
export interface Captured {
  id: number;
  location: number;
  closed: boolean;
  value: HogValue;
}

/** The size of a captured variable itself, in bytes. */
const CAPTURE_COST = 64;

/** The values of all stack frames with their sizes, and the captured variables. */
export class Stack {
  readonly values: HogValue[];
  readonly captured: Map<number, Captured>;
  /** Captured variables whose value is still on the stack, by location. */
  readonly #open: Map<number, Captured>;
  readonly #costs: number[] = [];
  readonly #meter: Meter;
  #memory = 0;
  /** By how much values have grown since everything was measured. */
  #changed = 0;
  maxMemory: number;
  /** The start of the current frame. Values below it cannot be popped. */
  base = 0;

  constructor(meter: Meter, values: HogValue[], captured: Captured[], maxMemory: number) {
    this.#meter = meter;
    this.values = values;
    this.maxMemory = maxMemory;
    this.captured = new Map(captured.map((one) => [one.id, one]));
    this.#open = new Map(captured.filter((one) => !one.closed).map((one) => [one.location, one]));
    for (const value of values) {
      const cost = sizeOf(value, meter);
      this.#costs.push(cost);
      this.grow(cost);
    }
    for (const one of captured) if (one.closed) this.grow(sizeOf(one.value, meter));
  }

  get height(): number {
    return this.values.length;
  }

  grow(bytes: number): void {
    this.#memory += bytes;
    if (this.#memory <= this.maxMemory) return;
    if (this.#memory > this.#meter.limits.maxMemory) this.#count();
    this.maxMemory = Math.max(this.maxMemory, this.#memory);
  }

  /**
   * Counts what changing a list or a dictionary has added to it. The remembered sizes of values around it do not change,
   * so everything is counted anew before they can be wrong by more than the limit.
   */
  changed(bytes: number): void {
    this.grow(bytes);
    this.#changed += Math.max(0, bytes);
    if (this.#changed > this.#meter.limits.maxMemory) this.#count();
  }

  /** Measures all values anew. Fails if they exceed the limit. */
  #count(): void {
    this.#changed = 0;
    this.#memory = this.captured.size * CAPTURE_COST;
    for (const one of this.captured.values()) if (one.closed) this.#memory += costOf(one.value, this.#meter);
    for (const [place, value] of this.values.entries()) {
      const cost = costOf(value, this.#meter);
      this.#costs[place] = cost;
      this.#memory += cost;
    }
    if (this.#memory > this.#meter.limits.maxMemory) this.#meter.outOfMemory(this.#memory);
  }

  push(value: HogValue): void {
    const cost = typeof value === 'number' || typeof value === 'boolean' ? 8 : sizeOf(value, this.#meter);
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

  /** Removes the top values and returns them, the lowest first. */
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

  /** Copies a variable to the top. Its size is already known. */
  load(slot: number): HogValue {
    const place = this.#place(slot);
    const cost = this.#costs[place] as number;
    const value = this.values[place];
    this.values.push(value);
    this.#costs.push(cost);
    this.grow(cost);
    return value;
  }

  /** Moves the top value into a variable. */
  store(slot: number): void {
    const cost = this.#costs.at(-1) as number;
    const value = this.pop();
    const place = this.#place(slot);
    this.grow(cost - (this.#costs[place] as number));
    this.values[place] = value;
    this.#costs[place] = cost;
  }

  #set(place: number, value: HogValue): void {
    const cost = sizeOf(value, this.#meter);
    const before = this.#costs[place] as number;
    this.values[place] = value;
    this.#costs[place] = cost;
    this.grow(cost - before);
  }

  /** Removes all values from `height` up. Captured variables among them keep their values. */
  drop(height: number): void {
    if (this.#open.size > 0) {
      for (const [location, one] of this.#open) {
        if (location < height) continue;
        one.closed = true;
        one.value = this.values[location] ?? null;
        this.#open.delete(location);
        // The memory of a captured value is never released, because the VM does not know when the closure is freed.
        this.grow(this.#costs[location] ?? 0);
      }
    }
    for (let i = height; i < this.#costs.length; i++) this.#memory -= this.#costs[i] as number;
    this.values.length = height;
    this.#costs.length = height;
  }

  /** Returns whether closures share the variable in a slot of the current frame. */
  isCaptured(slot: number): boolean {
    return this.#open.size > 0 && this.#open.has(this.base + slot);
  }

  /** Captures the variable in a slot of the current frame and returns its id. */
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
      this.grow(sizeOf(value, this.#meter) - sizeOf(one.value, this.#meter));
      one.value = value;
    } else if (one.location < this.values.length) this.#set(one.location, value);
  }
}
