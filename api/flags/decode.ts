import { promisify } from 'node:util';
import { gunzip, gunzipSync } from 'node:zlib';
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

const unpack = promisify(gunzip);

async function decompress(bytes: Buffer): Promise<Buffer> {
  try {
    return bytes.length <= AT_ONCE
      ? gunzipSync(bytes, { maxOutputLength: MOST_BYTES })
      : await unpack(bytes, { maxOutputLength: MOST_BYTES });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE') {
      throw new FlagBodyError(`The decompressed request is larger than ${MOST_BYTES} bytes.`, 413);
    }
    throw refusal('invalid GZIP data');
  }
}

const isGzip = (bytes: Buffer) => bytes[0] === 0x1f && bytes[1] === 0x8b;

/** NaN and Infinity as values of their own, as Python writes them. Texts before them are skipped as a whole. */
const NO_NUMBERS = /"(?:[^"\\]|\\.)*"|(?<![\w.+-])(?:NaN|-?Infinity)(?![\w.+-])/g;

function parse(text: string): unknown {
  try {
    return parseExactJson(text);
  } catch (error) {
    if (!text.includes('NaN') && !text.includes('Infinity')) throw error;
    return parseExactJson(text.replace(NO_NUMBERS, (found) => (found[0] === '"' ? found : 'null')));
  }
}

/** Reads JSON in base64. Forms turn its plus signs into spaces and may leave out the padding. */
function fromBase64(text: string): string {
  let plain = text;
  try {
    plain = decodeURIComponent(text);
  } catch {
    // It holds a percent sign of its own.
  }
  return Buffer.from(plain.replaceAll(' ', '+').replace(/\s/g, ''), 'base64').toString('utf8');
}

function readForm(bytes: Buffer): unknown {
  const text = bytes.toString('utf8');
  const fields = new URLSearchParams(text);
  const data = fields.get('data') ?? text.replace(/^data=/, '');
  try {
    return parse(data.trimStart().startsWith('{') ? data : fromBase64(data));
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
  const declaresGzip = /gzip/i.test(headers['content-encoding'] ?? '');
  if (type === 'application/x-www-form-urlencoded') {
    if (declaresGzip || compression?.startsWith('gzip')) throw refusal('a form cannot be compressed');
    return readForm(body);
  }
  if (!TYPES.has(type)) throw refusal(`unsupported content type: ${header}`);
  const asksGzip = compression === 'gzip' || compression === 'gzip-js';
  if (compression !== undefined && !asksGzip && compression !== 'base64') {
    throw refusal(`Unsupported compression type: ${compression}`);
  }
  // A proxy may have decompressed the body and kept the header.
  const isPacked = isGzip(body) || (asksGzip && body[0] !== 0x7b);
  if (!isPacked) return readText(body.toString('utf8'));
  return decompress(body).then((bytes) => readText(bytes.toString('utf8')));
}
