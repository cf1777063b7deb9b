import { isAscii, isUtf8 } from 'node:buffer';
import { isGzip, isZstd } from './compression.ts';
import { type Decoded, readJson } from './json.ts';
import {
  type Coding,
  codingOf,
  contentCodings,
  emptyBody,
  firstByte,
  isUnmarked,
  Layers,
  looksLikeJson,
} from './layers.ts';
import { DecodeError, LargeBodyError, MAX_BODY_BYTES, type Memory, ONE_GO, tooLarge } from './limits.ts';

const NOTHING = Buffer.alloc(0);

interface FormFields {
  data: Buffer | undefined;
  compression: string | undefined;
  token: string | undefined;
}

const FORM_LIKE = /^[\w$.%+-]+(?:\[\])?=/;

const looksLikeForm = (bytes: Buffer) => FORM_LIKE.test(bytes.toString('latin1', 0, 256));

function isForm(contentType: string | undefined): boolean {
  return contentType !== undefined && /^application\/x-www-form-urlencoded\s*(?:;|$)/i.test(contentType);
}

/** Reads the fields of a form that matter here: `data`, `compression`, and the project key. */
function readForm(bytes: Buffer): FormFields {
  if (!looksLikeForm(bytes)) {
    throw new DecodeError(
      'invalid_form',
      'failed to decode request: expected form data in POST request payload: the Content-Type says ' +
        'application/x-www-form-urlencoded, the body does not start with a field such as data=',
    );
  }
  const fields = new URLSearchParams(bytes.toString('utf8'));
  const data = fields.get('data');
  return {
    data: data === null ? undefined : Buffer.from(data),
    compression: fields.get('compression') ?? undefined,
    token: fields.get('api_key') ?? fields.get('token') ?? undefined,
  };
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
  admit?: ((bytes: number) => void | Promise<void>) | undefined;
  /** Where decompression takes its memory from. */
  memory?: Memory | undefined;
  /** Throws a LargeBodyError as soon as the body turns out to be large, so that another thread can decode it. */
  onlySmall?: boolean | undefined;
}

/** Notes the project key in the refusal of a body of which nothing else may be known. */
function namingToken<T>(token: string | undefined, step: () => T | Promise<T>): T | Promise<T> {
  const named = (error: unknown): never => {
    if (error instanceof DecodeError) error.token ??= token;
    throw error;
  };
  if (token === undefined) return step();
  try {
    const result = step();
    return result instanceof Promise ? result.catch(named) : result;
  } catch (error) {
    return named(error);
  }
}

/** The memory of a body that may not become large. */
function smallMemory(memory: Memory | undefined): Memory {
  let taken = 0;
  return {
    unpack: () => memory?.unpack(),
    grow(bytes) {
      memory?.grow(bytes);
      taken += bytes;
      if (taken > ONE_GO) throw new LargeBodyError();
    },
    shrink(bytes) {
      memory?.shrink(bytes);
      taken -= bytes;
    },
  };
}

const memoryOf = ({ memory, onlySmall }: WireBody) => (onlySmall ? smallMemory(memory) : memory);

/** Removes the layers around JSON, and waits for its turn to be parsed. Bytes that are JSON already stay as they are. */
async function unwrap({ bytes, codings }: Payload, wire: WireBody): Promise<Buffer> {
  const { contentEncoding, admit } = wire;
  const memory = memoryOf(wire);
  const layers = new Layers(bytes, codings, memory);
  // A proxy may have decompressed the body and kept the header.
  await layers.remove(looksLikeJson);
  if (!looksLikeJson(layers.bytes)) throw layers.refusal(contentEncoding);
  if (layers.bytes.length > MAX_BODY_BYTES) throw tooLarge('the body');
  await admit?.(layers.bytes.length);
  return layers.bytes;
}

/** Restores the plus signs of base64, which forms and queries turn into spaces. */
function fromText(bytes: Buffer): Buffer {
  if (looksLikeJson(bytes) || !bytes.includes(0x20)) return bytes;
  return Buffer.from(bytes.toString('latin1').trim().replaceAll(' ', '+'), 'latin1');
}

export function toJson(bytes: Buffer): Decoded | Promise<Decoded> {
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
  /** The declared layers around the JSON, the outermost first. */
  codings: readonly Coding[];
  /** The project key, if it came in a form field or around the payload. */
  token?: string | undefined;
}

function payloadOfForm(bytes: Buffer, codings: readonly Coding[], compression: string | undefined): Payload {
  const form = readForm(bytes);
  const hint = codingOf(compression) ?? codingOf(form.compression);
  return {
    bytes: fromText(form.data ?? NOTHING),
    codings: hint === undefined ? codings : [hint],
    token: form.token,
  };
}

/** Finds the payload in the body, in a field of a form, or in the query. */
async function payloadOf(wire: WireBody): Promise<Payload> {
  const { bytes, compression, contentEncoding } = wire;
  const memory = memoryOf(wire);
  const hint = codingOf(compression);
  const hinted = hint === undefined ? [] : [hint];
  if (bytes.length === 0) return { bytes: fromText(Buffer.from(wire.data ?? '')), codings: hinted };
  const codings = contentCodings(contentEncoding);
  if (!isForm(wire.contentType)) return { bytes, codings: [...codings, ...hinted] };
  const isCompressed = codings.length > 0 || isGzip(bytes) || isZstd(bytes);
  // Some clients name the coding of a field in the header, others compress the whole form.
  if (!isCompressed || looksLikeForm(bytes)) return payloadOfForm(bytes, codings, compression);
  const layers = new Layers(bytes, codings, memory);
  await layers.remove((inner) => looksLikeForm(inner) || looksLikeJson(inner));
  if (looksLikeJson(layers.bytes)) return { bytes: layers.bytes, codings: hinted };
  return payloadOfForm(layers.bytes, [], compression);
}

/** Parses JSON. If it carries the events in its `data`, decodes and parses that instead. */
function readBytes<T>(
  bytes: Buffer,
  formToken: string | undefined,
  wire: WireBody,
  use: Use<T>,
): T | Promise<T> {
  const decoded = toJson(bytes);
  const unfold = (one: Decoded): T | Promise<T> => {
    const inner = innerOf(one, formToken);
    if (!inner) return use(formToken === undefined ? one : { ...one, formToken });
    const { token } = inner;
    return namingToken(token, () =>
      openInner(inner, wire)
        .then(toJson)
        .then((found) => use({ ...found, formToken: token })),
    );
  };
  return decoded instanceof Promise ? decoded.then(unfold) : unfold(decoded);
}

/** The payload that a decoded body carries in its `data` as text, with the project key beside it. */
function innerOf({ root, chunks }: Decoded, formToken: string | undefined): Payload | undefined {
  const bytes = chunks ? undefined : dataField(root);
  if (!bytes) return undefined;
  const { api_key, token: own, compression } = root as Record<string, unknown>;
  const outer = api_key ?? own;
  const hint = codingOf(String(compression ?? ''));
  const codings = hint === undefined ? [] : [hint];
  return { bytes, codings, token: typeof outer === 'string' ? outer : formToken };
}

const openInner = (inner: Payload, { admit, memory, onlySmall }: WireBody): Promise<Buffer> =>
  unwrap(inner, { bytes: NOTHING, admit, memory, onlySmall });

/** Decodes a body that is not plain JSON. */
async function open(wire: WireBody): Promise<{ json: Buffer; token: string | undefined }> {
  const payload = await payloadOf(wire);
  if (payload.bytes.length === 0) throw emptyBody();
  const { token } = payload;
  return { json: await namingToken(token, () => unwrap(payload, wire)), token };
}

/** Whether the body is JSON as it is, for all that is known without decoding it. */
function isPlain({ bytes, contentType, contentEncoding, compression }: WireBody): boolean {
  if (bytes.length > MAX_BODY_BYTES || !looksLikeJson(bytes) || isForm(contentType)) return false;
  if (contentEncoding === undefined && compression === undefined) return true;
  return ![codingOf(compression), ...contentCodings(contentEncoding)].some(isUnmarked);
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
  if (wire.onlySmall && bytes.length > ONE_GO) throw new LargeBodyError();
  if (!isPlain(wire)) {
    return open(wire).then(({ json, token }) => namingToken(token, () => readBytes(json, token, wire, use)));
  }
  const wait = wire.admit?.(bytes.length);
  return wait
    ? wait.then(() => readBytes(bytes, undefined, wire, use))
    : readBytes(bytes, undefined, wire, use);
}

/** A body without anything around its JSON. */
export interface OpenedBody {
  json: Buffer;
  /** The project key, if it came in a form field or around the payload. */
  formToken: string | undefined;
  /** The parsed JSON. */
  decoded: Decoded;
}

/** Decodes a body like `useBody`, and returns its JSON also as bytes, so that it can be parsed again. */
export async function openBody(wire: WireBody): Promise<OpenedBody> {
  const { json, token } = isPlain(wire) ? { json: wire.bytes, token: undefined } : await open(wire);
  const decoded = await namingToken(token, () => toJson(json));
  const inner = innerOf(decoded, token);
  if (!inner) return { json, formToken: token, decoded: { ...decoded, formToken: token } };
  return namingToken(inner.token, async () => {
    const innerJson = await openInner(inner, wire);
    const innerDecoded = await toJson(innerJson);
    return { json: innerJson, formToken: inner.token, decoded: { ...innerDecoded, formToken: inner.token } };
  });
}

/** Decodes a body like `useBody`, and returns its JSON as a promise. */
export async function decodeBody(wire: WireBody): Promise<Decoded> {
  return useBody(wire, (decoded) => decoded);
}
