// The layers around the JSON of a body: compression and base64, declared by the client or recognised in the bytes.
import { isUtf8 } from 'node:buffer';
import { nextTurn } from '../../db/loop-turns.ts';
import { type Compression, decompress, isGzip, isZstd } from './compression.ts';
import { DecodeError, type Memory, ONE_GO } from './limits.ts';
import { decompressLz64 } from './lz64.ts';

const STRICT_BASE64 = /^[A-Za-z0-9+/]+={0,2}$/;
const LENIENT_BASE64 = /^[A-Za-z0-9+/_-]+={0,2}$/;
/** The first characters show that most bodies are not base64. */
const BASE64_SAMPLE = 64;

/** Whether the whole body is base64. JSON of an event never is, since it begins with a bracket. */
function isBase64(bytes: Buffer): boolean {
  if (bytes.length < 4 || bytes.length % 4 !== 0) return false;
  if (!STRICT_BASE64.test(bytes.toString('latin1', 0, BASE64_SAMPLE))) return false;
  return STRICT_BASE64.test(bytes.toString('latin1'));
}

/**
 * Decodes a body that is declared as base64. Accepts the URL alphabet, missing padding, and spaces that a form made of
 * plus signs. Undefined if the body is not base64.
 */
function decodeBase64(bytes: Buffer): Buffer | undefined {
  const text = bytes
    .toString('latin1')
    .trim()
    .replaceAll(' ', '+')
    .replace(/[\r\n]+/g, '');
  return LENIENT_BASE64.test(text) ? Buffer.from(text, 'base64') : undefined;
}

export type Coding = Compression | 'lz64' | 'base64';

const CODINGS: ReadonlyMap<string, Coding> = new Map([
  ['gzip', 'gzip'],
  ['x-gzip', 'gzip'],
  ['gzip-js', 'gzip'],
  ['deflate', 'deflate'],
  ['br', 'br'],
  ['zstd', 'zstd'],
  ['lz64', 'lz64'],
  ['lz-string', 'lz64'],
  ['base64', 'base64'],
  ['b64', 'base64'],
]);
/** Only the client tells that bytes have one of these codings: they may begin like anything else. */
export const isUnmarked = (coding: Coding | undefined): coding is 'deflate' | 'br' =>
  coding === 'deflate' || coding === 'br';
/** Clients and proxies may each add a layer: base64 of gzip, gzip of gzip. More layers are an attack. */
const MAX_LAYERS = 4;

/** The codings of a Content-Encoding, the outermost first. The header names them in the order in which they were made. */
export function contentCodings(encoding: string | undefined): Coding[] {
  if (encoding === undefined) return [];
  const names = encoding.split(',');
  if (names.length > MAX_LAYERS) {
    throw new DecodeError(
      'unknown_encoding',
      `failed to decode request: Content-Encoding names ${names.length} encodings, at most ${MAX_LAYERS} are accepted`,
    );
  }
  return names.flatMap((name) => codingOf(name) ?? []).reverse();
}

export function codingOf(name: string | undefined): Coding | undefined {
  return name === undefined ? undefined : CODINGS.get(name.trim().toLowerCase());
}

/** The index of the first byte that is neither white space nor a byte order mark. */
export function firstByte(bytes: Buffer): number {
  let index = bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf ? 3 : 0;
  while (index < bytes.length && (bytes[index] as number) <= 0x20) index += 1;
  return index;
}

export function looksLikeJson(bytes: Buffer): boolean {
  const first = bytes[firstByte(bytes)];
  return first === 0x7b || first === 0x5b;
}

/** Whether the bytes show by themselves how to go on. JSON must be text: compressed bytes may begin with a bracket too. */
function isRecognised(bytes: Buffer): boolean {
  return (looksLikeJson(bytes) && isUtf8(bytes)) || isGzip(bytes) || isZstd(bytes);
}

/** Removes the layers around a payload, both declared and recognised ones. */
export class Layers {
  bytes: Buffer;
  /** Declared codings that were not found yet, the outermost first. */
  readonly #left: Coding[];
  readonly #memory: Memory | undefined;
  #taken = 0;
  /** A compression that was declared and that the bytes do not begin with. */
  #missed: 'gzip' | 'zstd' | undefined;

  constructor(bytes: Buffer, declared: readonly Coding[], memory: Memory | undefined) {
    this.bytes = bytes;
    this.#left = [...declared];
    this.#memory = memory && {
      unpack: () => memory.unpack(),
      grow: (count) => {
        memory.grow(count);
        this.#taken += count;
      },
      shrink: (count) => {
        memory.shrink(count);
        this.#taken -= count;
      },
    };
  }

  /** Removes layers until the bytes are what is wanted, or no further layer is found. */
  async remove(isWanted: (bytes: Buffer) => boolean): Promise<void> {
    for (let layer = 0; layer < MAX_LAYERS; layer += 1) {
      await this.#othersTurn();
      // These are tried before anything is recognised: br of 64 KiB to 1 MiB, for example, begins with a bracket.
      for (let next = this.#left[0]; isUnmarked(next); next = this.#left[0]) {
        this.#left.shift();
        await this.#try(next);
      }
      if (isWanted(this.bytes)) return;
      if (!(await this.#removeOne())) return;
    }
  }

  /** The refusal of bytes that are not what is wanted although no further layer is found. */
  refusal(encoding: string | undefined): DecodeError {
    if (this.bytes.length === 0) return emptyBody();
    const missed = this.#missed;
    if (missed !== undefined) {
      const label = missed === 'gzip' ? 'GZIP' : missed;
      return new DecodeError(
        `invalid_${missed}`,
        `failed to decode request: invalid ${label} data: the body is declared as ${missed} and does not start like it`,
      );
    }
    return notJson(this.bytes, encoding);
  }

  /** To look through a large body, or to copy it, takes some ten milliseconds. */
  async #othersTurn(): Promise<void> {
    if (this.bytes.length > ONE_GO) await nextTurn();
  }

  async #removeOne(): Promise<boolean> {
    const marked = isGzip(this.bytes) ? 'gzip' : isZstd(this.bytes) ? 'zstd' : undefined;
    if (marked !== undefined) {
      const index = this.#left.indexOf(marked);
      if (index !== -1) this.#left.splice(index, 1);
      await this.#replace(decompress(this.bytes, marked, this.#memory));
      return true;
    }
    let declared = this.#left[0];
    while (declared === 'gzip' || declared === 'zstd') {
      this.#missed ??= declared;
      this.#left.shift();
      declared = this.#left[0];
    }
    if (isUnmarked(declared)) return true;
    if (declared === 'lz64') {
      this.#left.shift();
      await this.#replace(decompressLz64(this.bytes, this.#memory).then(Buffer.from));
      return true;
    }
    if (declared !== 'base64' && !isBase64(this.bytes)) return false;
    if (declared === 'base64') this.#left.shift();
    await this.#othersTurn();
    const plain = decodeBase64(this.bytes);
    if (!plain) {
      throw new DecodeError(
        'invalid_base64',
        'failed to decode request: invalid base64 data: the body holds letters outside of the alphabet',
      );
    }
    this.bytes = plain;
    return true;
  }

  /** Decompresses the bytes, unless they show that this layer is not there: a proxy may have removed it. */
  async #try(compression: Compression): Promise<void> {
    if (isBase64(this.bytes)) this.bytes = Buffer.from(this.bytes.toString('latin1'), 'base64');
    const before = this.#taken;
    try {
      await this.#replace(decompress(this.bytes, compression, this.#memory));
    } catch (error) {
      if (!(error instanceof DecodeError) || error.status === 413 || !isRecognised(this.bytes)) throw error;
      this.#memory?.shrink(this.#taken - before);
    }
  }

  async #replace(next: Buffer | Promise<Buffer>): Promise<void> {
    const before = this.#taken;
    this.bytes = await next;
    this.#memory?.shrink(before);
  }
}

export const emptyBody = () => new DecodeError('empty_body', 'request missing data payload');

function notJson(bytes: Buffer, encoding: string | undefined): DecodeError {
  const unknown = encoding
    ?.split(',')
    .find((name) => !/^\s*(?:identity\s*)?$/i.test(name) && !codingOf(name));
  if (unknown !== undefined) {
    return new DecodeError(
      'unknown_encoding',
      `failed to decode request: Content-Encoding ${JSON.stringify(unknown.trim().slice(0, 40))} is not known; send gzip, deflate, br or zstd, or no compression`,
    );
  }
  const start = firstByte(bytes);
  const first = JSON.stringify(bytes.toString('utf8', start, start + 20));
  return new DecodeError(
    'invalid_json',
    `failed to parse request: expected a JSON object or array, a form, base64 or gzip of it; the body starts with ${first}`,
  );
}
