import { promisify } from 'node:util';
import { brotliDecompress, gunzip, gunzipSync, inflate, inflateRaw, zstdDecompress } from 'node:zlib';
import json5 from 'json5';
import { parseExactJson } from '../../values/exact-json.ts';
import { type Incoming, lastOf, type Query } from '../public/exchange.ts';

/** The largest body, as received and as decompressed. Persons of clients have a few kilobytes. */
export const MOST_BYTES = 2 * 1024 * 1024;
/** Smaller bodies are decompressed at once: that is cheaper than to wait for another thread. */
const AT_ONCE = 16 * 1024;

/** The body cannot be read. The message is the answer's text. */
export class FlagBodyError extends Error {
  override name = 'FlagBodyError';
  readonly status: 400 | 413;

  constructor(message: string, status: 400 | 413 = 400) {
    super(message);
    this.status = status;
  }
}

const refusal = (what: string) =>
  new FlagBodyError(`Failed to decode request: ${what}. Please check your request format and try again.`);

const BOUND = { maxOutputLength: MOST_BYTES };
const unpackGzip = promisify(gunzip) as (bytes: Buffer, bound: typeof BOUND) => Promise<Buffer>;
/** The other codings of bodies, by the first byte where it matters. */
const unpackZlib = promisify(inflate) as typeof unpackGzip;
const unpackDeflate = promisify(inflateRaw) as typeof unpackGzip;
const UNPACK: Readonly<Record<string, typeof unpackGzip>> = {
  gzip: async (bytes, bound) =>
    bytes.length <= AT_ONCE ? gunzipSync(bytes, bound) : unpackGzip(bytes, bound),
  deflate: (bytes, bound) =>
    ((bytes[0] as number) & 0x0f) === 8 ? unpackZlib(bytes, bound) : unpackDeflate(bytes, bound),
  br: promisify(brotliDecompress) as typeof unpackGzip,
  zstd: promisify(zstdDecompress) as typeof unpackGzip,
};

async function decompress(bytes: Buffer, coding: string): Promise<Buffer> {
  try {
    return await (UNPACK[coding] as typeof unpackGzip)(bytes, BOUND);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE') {
      throw new FlagBodyError(`The decompressed request is larger than ${MOST_BYTES} bytes.`, 413);
    }
    throw refusal(coding === 'gzip' ? 'invalid GZIP data' : `invalid ${coding} data`);
  }
}

const isGzip = (bytes: Buffer) => bytes[0] === 0x1f && bytes[1] === 0x8b;

/** NaN and Infinity as values of their own, as Python writes them. Texts before them are skipped as a whole. */
const NO_NUMBERS = /"(?:[^"\\]|\\.)*"|(?<![\w.+-])(?:NaN|-?Infinity)(?![\w.+-])/g;

/** What people write by hand: comments, names and texts without double quotes, commas at the end. */
const BY_HAND = /^\s*[{/]/;
/** The parser for it is slow. */
const LONGEST_BY_HAND = 64 * 1024;

function parse(text: string): unknown {
  try {
    return parseExactJson(text);
  } catch (error) {
    if (text.includes('NaN') || text.includes('Infinity')) {
      try {
        return parseExactJson(text.replace(NO_NUMBERS, (found) => (found[0] === '"' ? found : 'null')));
      } catch {
        // There is more in it than numbers that JSON does not have.
      }
    }
    if (text.length > LONGEST_BY_HAND || !BY_HAND.test(text)) throw error;
    return json5.parse(text, (_key, value) =>
      typeof value === 'number' && !Number.isFinite(value) ? null : value,
    );
  }
}

/** Reads JSON in base64, whose padding may be left out. White space in it says nothing. */
function fromBase64(text: string): string {
  let plain = text;
  try {
    plain = decodeURIComponent(text);
  } catch {
    // It holds a percent sign of its own.
  }
  return Buffer.from(plain.replace(/\s/g, ''), 'base64').toString('utf8');
}

function readForm(bytes: Buffer): unknown {
  const text = bytes.toString('utf8');
  const data = new URLSearchParams(text).get('data') ?? text.replace(/^data=/, '');
  try {
    if (data.trimStart().startsWith('{')) return parse(data);
    // Clients do not encode the plus signs of base64, which stand for spaces in a form.
    return parse(fromBase64(new URLSearchParams(text.replaceAll('+', '%2B')).get('data') ?? data));
  } catch {
    throw refusal('invalid JSON');
  }
}

function readText(text: string): unknown {
  try {
    return parse(text);
  } catch {
    // Older clients send JSON in base64 and say so only in the query.
  }
  try {
    return parse(fromBase64(text));
  } catch {
    throw refusal('invalid JSON');
  }
}

const typeOf = (header: string | undefined) => header?.split(';', 1)[0]?.trim().toLowerCase() ?? '';
const TYPES = new Set(['', 'application/json', 'text/plain']);

/** Reads the JSON of a request in any of the forms that clients use. Mostly without a promise. */
export function decodeFlagBody({ request, body }: Incoming): unknown | Promise<unknown> {
  const { headers } = request;
  const query = request.query as Query;
  const compression = lastOf(query.compression) || undefined;
  const header = headers['content-type'];
  const type = typeOf(header);
  const encoding = (headers['content-encoding'] ?? '').trim().toLowerCase();
  const declared = Object.hasOwn(UNPACK, encoding) ? encoding : undefined;
  const asksGzip = compression === 'gzip' || compression === 'gzip-js';
  if (compression !== undefined && !asksGzip && compression !== 'base64') {
    throw refusal(`Unsupported compression type: ${compression}`);
  }
  if (type === 'application/x-www-form-urlencoded') {
    if (declared || asksGzip) throw refusal('a form cannot be compressed');
    return readForm(body);
  }
  if (!TYPES.has(type)) throw refusal(`unsupported content type: ${header}`);
  const coding = isGzip(body) ? 'gzip' : (declared ?? (asksGzip ? 'gzip' : undefined));
  // A proxy may have decompressed the body and kept the header.
  if (coding === undefined || body[0] === 0x7b) return readText(body.toString('utf8'));
  return decompress(body, coding).then((bytes) => readText(bytes.toString('utf8')));
}
