import { readFileSync } from 'node:fs';
import path from 'node:path';
import type { CompiledFlag } from '../compile.ts';
import { placeOf } from '../hash.ts';

/** The exports of assembly/index.ts. */
interface Exports {
  memory: { readonly buffer: ArrayBuffer };
  groupAt(): number;
  idAt(): number;
  placesAt(): number;
  draw(idLength: number): void;
}

// The layout that assembly/index.ts shares.
const TOGETHER = 4;
const LONGEST_PREFIX = 64;
const LONGEST_ID = 240;
const HEAD = 4 * TOGETHER;
const HAS_SUFFIX = 0x100;
const SUFFIX = 'variant';

interface Kernel {
  run: Exports;
  group: Uint8Array;
  id: Uint8Array;
  places: Float64Array;
}

let loaded: Kernel | undefined;
/** The id that lies in the memory of the kernel, and how many bytes it has. -1: it is too long. */
let written: string | undefined;
let writtenLength = 0;
const encoder = new TextEncoder();

function kernel(): Kernel {
  if (!loaded) {
    const module = new WebAssembly.Module(readFileSync(path.join(import.meta.dirname, 'draws.wasm')));
    const run = new WebAssembly.Instance(module, {}).exports as Exports;
    const { buffer } = run.memory;
    loaded = {
      run,
      group: new Uint8Array(buffer, run.groupAt(), HEAD + TOGETHER * LONGEST_PREFIX),
      id: new Uint8Array(buffer, run.idAt(), LONGEST_ID),
      places: new Float64Array(buffer, run.placesAt(), TOGETHER),
    };
  }
  return loaded;
}

function writeId(id: string, into: Uint8Array): number {
  if (id.length > LONGEST_ID) return -1;
  for (let index = 0; index < id.length; index += 1) {
    const code = id.charCodeAt(index);
    if (code > 0x7f) {
      const { read, written } = encoder.encodeInto(id, into);
      return read === id.length ? written : -1;
    }
    into[index] = code;
  }
  return id.length;
}

interface Text {
  prefix: string;
  suffix: string;
}

/** Four texts as the kernel reads them: without the id. */
function groupOf(texts: readonly Text[]): Uint8Array {
  const group = new Uint8Array(HEAD + TOGETHER * LONGEST_PREFIX);
  const head = new Uint32Array(group.buffer, 0, TOGETHER);
  texts.forEach(({ prefix, suffix }, lane) => {
    const { written } = encoder.encodeInto(prefix, group.subarray(HEAD + lane * LONGEST_PREFIX));
    head[lane] = written | (suffix === '' ? 0 : HAS_SUFFIX);
  });
  return group;
}

/** Which of the draws of a set a flag makes. -1: none of them. */
interface OfFlag {
  rollout: number;
  variant: number;
}

const NONE: OfFlag = { rollout: -1, variant: -1 };

/**
 * Where persons lie in the rollouts and among the variants of the flags of a set. Four places are computed at once, when the
 * first of them is asked for: an answer needs most of them, for the same id.
 */
export class Draws {
  readonly #texts: Text[] = [];
  readonly #ofFlags = new Map<CompiledFlag, OfFlag>();
  readonly #groups: (Uint8Array | undefined)[] = [];
  readonly #places: Float64Array;
  /** For whom the places of each group were computed. */
  readonly #ids: (string | undefined)[];

  constructor(flags: Iterable<CompiledFlag>) {
    for (const flag of flags) {
      const { definition, conditions, constant } = flag;
      const prefix = `${definition.key}.`;
      const isLong = Buffer.byteLength(prefix) > LONGEST_PREFIX;
      if (constant !== null || !definition.isActive || definition.bucketing !== 'distinct_id' || isLong)
        continue;
      const ofPersons = conditions.filter((one) => one.group === null);
      const add = (suffix: string) => this.#texts.push({ prefix, suffix }) - 1;
      const rollout = ofPersons.some((one) => one.rollout !== null && one.rollout < 100) ? add('') : -1;
      const isDrawn = flag.variants.length > 0 && ofPersons.some((one) => one.variant === null);
      const variant = isDrawn ? add(SUFFIX) : -1;
      if (rollout >= 0 || variant >= 0) this.#ofFlags.set(flag, { rollout, variant });
    }
    const count = Math.ceil(this.#texts.length / TOGETHER);
    this.#places = new Float64Array(count * TOGETHER);
    this.#ids = new Array(count).fill(undefined);
  }

  /** Where an id lies in the rollout of a flag. */
  rollout(flag: CompiledFlag, id: string): number {
    const { rollout } = this.#ofFlags.get(flag) ?? NONE;
    return rollout < 0 ? placeOf(`${flag.definition.key}.${id}`) : this.#place(rollout, id);
  }

  /** Where an id lies among the variants of a flag. */
  variant(flag: CompiledFlag, id: string): number {
    const { variant } = this.#ofFlags.get(flag) ?? NONE;
    return variant < 0 ? placeOf(`${flag.definition.key}.${id}${SUFFIX}`) : this.#place(variant, id);
  }

  #place(index: number, id: string): number {
    const at = index >> 2;
    if (this.#ids[at] !== id && !this.#draw(at, id)) {
      const { prefix, suffix } = this.#texts[index] as Text;
      return placeOf(`${prefix}${id}${suffix}`);
    }
    return this.#places[index] as number;
  }

  #draw(at: number, id: string): boolean {
    const { run, group, id: into, places } = loaded ?? kernel();
    if (written !== id) {
      writtenLength = writeId(id, into);
      written = id;
    }
    if (writtenLength < 0) return false;
    let texts = this.#groups[at];
    if (!texts) {
      texts = groupOf(this.#texts.slice(at * TOGETHER, (at + 1) * TOGETHER));
      this.#groups[at] = texts;
    }
    group.set(texts);
    run.draw(writtenLength);
    const from = at * TOGETHER;
    for (let lane = 0; lane < TOGETHER; lane += 1) this.#places[from + lane] = places[lane] as number;
    this.#ids[at] = id;
    return true;
  }
}
