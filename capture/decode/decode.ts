import { isAscii, isUtf8 } from 'node:buffer';
import { gunzip, gunzipSync } from 'node:zlib';
import { type Decoded, readJson } from './json.ts';
import { DecodeError, MAX_BODY_BYTES, tooLarge } from './limits.ts';
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

interface FormFields {
  data: Buffer | undefined;
  compression: string | undefined;
  token: string | undefined;
}

const FORM_LIKE = /^[\w$.%+-]+(?:\[\])?=/;

function isForm(contentType: string | undefined): boolean {
  return contentType !== undefined && /^application\/x-www-form-urlencoded\s*(?:;|$)/i.test(contentType);
}

/** Reads the fields of a form that matter here: `data`, `compression`, and the project key. */
function readForm(bytes: Buffer): FormFields {
  const text = bytes.toString('utf8');
  if (!FORM_LIKE.test(text.slice(0, 256))) {
    throw new DecodeError(
      'failed to decode request: expected form data in POST request payload: the Content-Type says ' +
        'application/x-www-form-urlencoded, the body does not start with a field such as data=',
    );
  }
  const fields = new URLSearchParams(text);
  const data = fields.get('data');
  return {
    data: data === null ? undefined : Buffer.from(data),
    compression: fields.get('compression') ?? undefined,
    token: fields.get('api_key') ?? fields.get('token') ?? undefined,
  };
}

/** Up to these sizes, decompression takes well under a millisecond. The thread pool would take longer. */
const SYNC_GZIP_INPUT = 32 * 1024;
const SYNC_GZIP_OUTPUT = 256 * 1024;

function isGzip(bytes: Buffer): boolean {
  return bytes.length > 2 && bytes[0] === 0x1f && bytes[1] === 0x8b && bytes[2] === 0x08;
}

function gzipRefusal(error: unknown): DecodeError {
  if ((error as { code?: string }).code === 'ERR_BUFFER_TOO_LARGE') return tooLarge('the decompressed body');
  return new DecodeError(
    `failed to decode request: invalid GZIP data (${(error as Error).message}): send the whole gzip stream, or no compression`,
  );
}

function inflateElsewhere(bytes: Buffer): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    // zlib stops at the limit, so a decompression bomb costs at most 20 MB.
    gunzip(bytes, { maxOutputLength: MAX_BODY_BYTES }, (error, result) => {
      if (error) reject(gzipRefusal(error));
      else resolve(result);
    });
  });
}

/** Decompresses small bodies at once, and large ones on the thread pool. */
function inflate(bytes: Buffer): Buffer | Promise<Buffer> {
  if (bytes.length > SYNC_GZIP_INPUT) return inflateElsewhere(bytes);
  try {
    return gunzipSync(bytes, { maxOutputLength: SYNC_GZIP_OUTPUT });
  } catch (error) {
    if ((error as { code?: string }).code === 'ERR_BUFFER_TOO_LARGE') return inflateElsewhere(bytes);
    throw gzipRefusal(error);
  }
}

/** A body as it came over the wire, with what the request said about it. */
export interface WireBody {
  bytes: Buffer;
  contentType?: string | undefined;
  contentEncoding?: string | undefined;
  /** The query's `compression`. */
  compression?: string | undefined;
  /** The query's `data`. It is the payload of a request without a body. */
  data?: string | undefined;
  /** Called with the size of the JSON before it is parsed. May let it wait by a promise, or refuse it by throwing. */
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
/** Clients and proxies may each add a layer: base64 of gzip, gzip of gzip. More layers are an attack. */
const MAX_LAYERS = 4;

function hintOf(...said: (string | undefined)[]): Hint {
  for (const one of said) {
    const hint = one === undefined ? undefined : HINTS.get(one.trim().toLowerCase());
    if (hint !== undefined) return hint;
  }
  return undefined;
}

/** The index of the first byte that is neither white space nor a byte order mark. */
function firstByte(bytes: Buffer): number {
  let index = bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf ? 3 : 0;
  while (index < bytes.length && (bytes[index] as number) <= 0x20) index += 1;
  return index;
}

function looksLikeJson(bytes: Buffer): boolean {
  const first = bytes[firstByte(bytes)];
  return first === 0x7b || first === 0x5b;
}

/**
 * Removes the layers around the JSON, both declared and recognised ones. Bytes that are JSON already stay as they are.
 */
async function unwrap(payload: Buffer, hint: Hint, encoding: string | undefined): Promise<Buffer> {
  let bytes = payload;
  let declared = hint;
  for (let layer = 0; layer < MAX_LAYERS; layer += 1) {
    // A proxy may have decompressed the body and kept the header.
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

/** Restores the plus signs of base64, which forms and queries turn into spaces. */
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
  // Nearly all events are ASCII, which is the fastest to turn into text.
  if (isAscii(bytes)) return readJson(bytes.toString('latin1'), false);
  // Invalid bytes become U+FFFD: the rest of the event is worth more than its refusal.
  return readJson(bytes.toString('utf8', bytes[0] === 0xef ? firstByte(bytes) : 0), !isUtf8(bytes));
}

/** The `data` of an object that carries the events as text, as some forwarders send it. */
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

/** Finds the payload in the body, in a field of a form, or in the query. */
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

/** Parses JSON. If it carries the events in its `data`, decodes and parses that instead. */
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

/** Decodes a body that is not plain JSON, and waits for its turn to be parsed. */
async function open(wire: WireBody): Promise<Pick<Payload, 'bytes' | 'formToken'>> {
  const { bytes, hint, formToken } = payloadOf(wire);
  if (bytes.length === 0) throw new DecodeError('request missing data payload');
  const json = await unwrap(bytes, hint, wire.contentEncoding);
  if (json.length > MAX_BODY_BYTES) throw tooLarge('the body');
  const wait = wire.admit?.(json.length);
  if (wait) await wait;
  return { bytes: json, formToken };
}

/** What the caller does with a decoded body. */
type Use<T> = (decoded: Decoded) => T | Promise<T>;

/**
 * Decodes a body of any accepted form and hands its JSON to `use`. Plain, small JSON, the usual case, takes no promise.
 * Throws a DecodeError that says what could not be decoded.
 *
 * Why `use` and not a promise of the JSON: a promise would exist while the body waits for its turn, and so be an old
 * object when it resolves. The garbage collector keeps what an old object refers to until its next full collection,
 * even if the object is dead.
 */
export function useBody<T>(wire: WireBody, use: Use<T>): T | Promise<T> {
  const { bytes } = wire;
  if (bytes.length > MAX_BODY_BYTES || !looksLikeJson(bytes) || isForm(wire.contentType)) {
    return open(wire).then((opened) => readBytes(opened.bytes, opened.formToken, use));
  }
  const wait = wire.admit?.(bytes.length);
  return wait ? wait.then(() => readBytes(bytes, undefined, use)) : readBytes(bytes, undefined, use);
}

/** Decodes a body like `useBody`, and returns its JSON as a promise. */
export async function decodeBody(wire: WireBody): Promise<Decoded> {
  return useBody(wire, (decoded) => decoded);
}
