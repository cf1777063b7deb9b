import { isAscii, isUtf8 } from 'node:buffer';
import { decodeBase64, isBase64 } from './base64.ts';
import { isForm, readForm } from './form.ts';
import { inflate, isGzip } from './gzip.ts';
import { type Decoded, readJson } from './json.ts';
import { DecodeError, MAX_BODY_BYTES, tooLarge } from './limits.ts';
import { decompressLz64 } from './lz64.ts';

/** A body as it came over the wire, with what was said about it. */
export interface WireBody {
  bytes: Buffer;
  contentType?: string | undefined;
  contentEncoding?: string | undefined;
  /** The query's `compression`. */
  compression?: string | undefined;
  /** The query's `data`: the payload of a request without a body. */
  data?: string | undefined;
  /** Told the size of what is to be parsed, before it is; may let it wait, or refuse it by throwing. */
  admit?: (bytes: number) => void | Promise<void>;
}

type Hint = 'gzip' | 'lz64' | 'base64' | undefined;

const HINTS: ReadonlyMap<string, Hint> = new Map([
  ['gzip', 'gzip'],
  ['x-gzip', 'gzip'],
  ['gzip-js', 'gzip'],
  ['lz64', 'lz64'],
  ['lz-string', 'lz64'],
  ['base64', 'base64'],
  ['b64', 'base64'],
]);
/** Clients and proxies wrap each other: base64 of gzip, gzip of gzip. More is nobody's honest work. */
const MAX_LAYERS = 4;

function hintOf(...said: (string | undefined)[]): Hint {
  for (const one of said) {
    const hint = one === undefined ? undefined : HINTS.get(one.trim().toLowerCase());
    if (hint !== undefined) return hint;
  }
  return undefined;
}

/** Index of the first byte that is neither white space nor a byte order mark. */
function firstByte(bytes: Buffer): number {
  let index = bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf ? 3 : 0;
  while (index < bytes.length && (bytes[index] as number) <= 0x20) index += 1;
  return index;
}

function looksLikeJson(bytes: Buffer): boolean {
  const first = bytes[firstByte(bytes)];
  return first === 0x7b || first === 0x5b;
}

/** Takes off what is around the JSON, declared or visible. Bytes that already are JSON are never touched. */
async function unwrap(payload: Buffer, hint: Hint, encoding: string | undefined): Promise<Buffer> {
  let bytes = payload;
  let declared = hint;
  for (let layer = 0; layer < MAX_LAYERS; layer += 1) {
    // What a proxy decompressed on the way keeps its header.
    if (looksLikeJson(bytes)) return bytes;
    if (isGzip(bytes)) {
      bytes = await inflate(bytes);
      if (declared === 'gzip') declared = undefined;
    } else if (declared === 'lz64') {
      bytes = Buffer.from(await decompressLz64(bytes));
      declared = undefined;
    } else if (declared === 'base64') {
      const plain = decodeBase64(bytes);
      if (!plain) {
        throw new DecodeError(
          'failed to decode request: invalid base64 data: the body holds letters outside of the alphabet',
        );
      }
      bytes = plain;
      declared = undefined;
    } else if (isBase64(bytes)) {
      bytes = Buffer.from(bytes.toString('latin1'), 'base64');
    } else if (declared === 'gzip') {
      throw new DecodeError(
        'failed to decode request: invalid GZIP data: the body is declared as gzip and does not start like it',
      );
    } else break;
  }
  if (!looksLikeJson(bytes)) throw notJson(bytes, encoding);
  return bytes;
}

/** Forms and queries turn the plus signs of base64 into spaces. */
function fromText(bytes: Buffer): Buffer {
  if (looksLikeJson(bytes) || !bytes.includes(0x20)) return bytes;
  return Buffer.from(bytes.toString('latin1').trim().replaceAll(' ', '+'), 'latin1');
}

function notJson(bytes: Buffer, encoding: string | undefined): DecodeError {
  if (encoding !== undefined && encoding !== 'identity' && !hintOf(encoding)) {
    return new DecodeError(
      `failed to decode request: Content-Encoding ${JSON.stringify(encoding.slice(0, 40))} is not known; send gzip, or no compression`,
    );
  }
  const start = firstByte(bytes);
  const first = JSON.stringify(bytes.toString('utf8', start, start + 20));
  return new DecodeError(
    `failed to parse request: expected a JSON object or array, a form, base64 or gzip of it; the body starts with ${first}`,
  );
}

function toJson(bytes: Buffer): Decoded | Promise<Decoded> {
  // Nearly all events are ASCII, the quickest of all to turn into text.
  if (isAscii(bytes)) return readJson(bytes.toString('latin1'), false);
  // Invalid bytes become U+FFFD: the rest of the event is worth more than its refusal.
  return readJson(bytes.toString('utf8', bytes[0] === 0xef ? firstByte(bytes) : 0), !isUtf8(bytes));
}

/** An object that carries the events as text in its `data`, as some forwarders send it. */
function dataField(root: unknown): Buffer | undefined {
  if (typeof root !== 'object' || root === null || Array.isArray(root)) return undefined;
  const { data, event, batch } = root as Record<string, unknown>;
  if (typeof data !== 'string' || event !== undefined || batch !== undefined || data === '') return undefined;
  return Buffer.from(data);
}

interface Payload {
  bytes: Buffer;
  hint: Hint;
  formToken?: string | undefined;
}

/** Finds the payload: in the body, in a field of a form, in the query. */
function payloadOf(wire: WireBody): Payload {
  const { bytes, compression, contentEncoding } = wire;
  if (bytes.length === 0) return { bytes: fromText(Buffer.from(wire.data ?? '')), hint: hintOf(compression) };
  if (!isForm(wire.contentType) || isGzip(bytes)) {
    return { bytes, hint: hintOf(compression, contentEncoding) };
  }
  const form = readForm(bytes);
  return {
    bytes: fromText(form.data ?? Buffer.alloc(0)),
    hint: hintOf(compression, form.compression, contentEncoding),
    formToken: form.token,
  };
}

/** JSON as it is, or what it carries in its `data`. */
function readBytes<T>(bytes: Buffer, formToken: string | undefined, use: Use<T>): T | Promise<T> {
  const decoded = toJson(bytes);
  const unfold = (one: Decoded): T | Promise<T> => {
    const inner = one.chunks ? undefined : dataField(one.root);
    if (inner) return decodeInner(inner, one.root as Record<string, unknown>, formToken).then(use);
    return use(formToken === undefined ? one : { ...one, formToken });
  };
  return decoded instanceof Promise ? decoded.then(unfold) : unfold(decoded);
}

async function decodeInner(
  inner: Buffer,
  { api_key, token, compression }: Record<string, unknown>,
  formToken: string | undefined,
): Promise<Decoded> {
  const outerToken = api_key ?? token;
  const bytes = await unwrap(inner, hintOf(String(compression ?? '')), undefined);
  if (bytes.length > MAX_BODY_BYTES) throw tooLarge('the body');
  const content = await toJson(bytes);
  return { ...content, formToken: typeof outerToken === 'string' ? outerToken : formToken };
}

/** A body that is more than plain JSON: what is around it taken off, and its turn waited for. */
async function open(wire: WireBody): Promise<Pick<Payload, 'bytes' | 'formToken'>> {
  const { bytes, hint, formToken } = payloadOf(wire);
  if (bytes.length === 0) throw new DecodeError('request missing data payload');
  const json = await unwrap(bytes, hint, wire.contentEncoding);
  if (json.length > MAX_BODY_BYTES) throw tooLarge('the body');
  const wait = wire.admit?.(json.length);
  if (wait) await wait;
  return { bytes: json, formToken };
}

/** What is to be done with a decoded body. */
export type Use<T> = (decoded: Decoded) => T | Promise<T>;

/**
 * Any accepted form of a body → its JSON, handed to `use`, without waiting where nothing is to be waited for: most
 * bodies are JSON as it is, and small. Fails with a DecodeError that says what could not be decoded.
 *
 * A promise of the JSON would be there before a body that waits for its turn is parsed. By then it is old, and what
 * old objects hold, dead or not, the garbage collector keeps until it looks at everything. Hence `use`.
 */
export function useBody<T>(wire: WireBody, use: Use<T>): T | Promise<T> {
  const { bytes } = wire;
  if (bytes.length > MAX_BODY_BYTES || !looksLikeJson(bytes) || isForm(wire.contentType)) {
    return open(wire).then((opened) => readBytes(opened.bytes, opened.formToken, use));
  }
  const wait = wire.admit?.(bytes.length);
  return wait ? wait.then(() => readBytes(bytes, undefined, use)) : readBytes(bytes, undefined, use);
}

/** The same as a promise. */
export async function decodeBody(wire: WireBody): Promise<Decoded> {
  return useBody(wire, (decoded) => decoded);
}
