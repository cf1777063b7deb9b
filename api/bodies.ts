import { parse as parseQuery } from 'node:querystring';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { z } from 'zod';
import { nextTurn } from '../db/loop-turns.ts';
import { parseExactJson } from '../values/exact-json.ts';
import { endOfText } from '../values/nesting.ts';
import { gone } from './asker.ts';
import { errors } from './errors.ts';
import { SMALL_BODY } from './fair-starts.ts';
import { refuseUnstorableText } from './validation.ts';

/** Deeper JSON is refused before it is parsed, because later steps (storing, comparing) are recursive. */
const MAX_DEPTH = 200;

/**
 * The most values of a body, lists and objects included. More take so long to check, store and show that other requests
 * would wait.
 */
const MAX_VALUES = 25_000;

/** The most fields of a form, for the same reason. */
const MAX_FIELDS = 10_000;

const FORM = 'application/x-www-form-urlencoded';

/** Measures how deep a JSON text nests and about how many values it has, without parsing it. */
export function jsonShape(text: string): { depth: number; values: number } {
  let depth = 0;
  let deepest = 0;
  let values = 1;
  for (let index = 0; index < text.length; index += 1) {
    const code = text.charCodeAt(index);
    if (code === 0x22) index = endOfText(text, index + 1);
    else if (code === 0x5b || code === 0x7b) {
      depth += 1;
      values += 1;
      if (depth > deepest) deepest = depth;
    } else if (code === 0x5d || code === 0x7d) depth -= 1;
    else if (code === 0x2c) values += 1;
  }
  return { depth: deepest, values };
}

const utf8 = new TextDecoder('utf-8', { fatal: true });

function decode(bytes: Buffer): string {
  try {
    return utf8.decode(bytes);
  } catch {
    throw errors.parseError('the text is not UTF-8');
  }
}

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Numbers of the body keep their spelling (values/exact-json.ts). */
    keepsNumbers?: true;
  }
}

function parseJson(bytes: Buffer, keepsNumbers: boolean): unknown {
  const text = decode(bytes);
  if (text.trim() === '') return {};
  const { depth, values } = jsonShape(text);
  if (depth > MAX_DEPTH) throw errors.parseError(`nested deeper than ${MAX_DEPTH} levels`);
  if (values > MAX_VALUES) throw errors.parseError(`more than ${MAX_VALUES} values`);
  let value: unknown;
  try {
    value = PROTO.test(text)
      ? JSON.parse(text, (key, entry) => (key === '__proto__' ? undefined : entry))
      : keepsNumbers
        ? parseExactJson(text)
        : JSON.parse(text);
  } catch (error) {
    throw errors.parseError((error as Error).message.replace(EXCERPT, ''));
  }
  if (UNSTORABLE.test(text)) refuseUnstorableText(value);
  return value;
}

function parseForm(bytes: Buffer): unknown {
  const text = bytes.toString();
  let fields = 1;
  for (let at = text.indexOf('&'); at !== -1; at = text.indexOf('&', at + 1)) fields += 1;
  if (fields > MAX_FIELDS) throw errors.malformed(`The form has more than ${MAX_FIELDS} fields.`);
  return parseQuery(text, '&', '=', { maxKeys: 0 });
}

/** The end of a message of the engine that repeats a part of the body. The body may contain secrets. */
const EXCERPT = /, (?:\.{3})?"[\s\S]*"(?:\.{3})? is not valid JSON$/;

// Looking at each key and text takes longer than parsing, so this is only done where the text gives a reason.
/** A text that can have the key `__proto__`, perhaps with letters as escapes. */
const PROTO = /__proto__|\\u00/;
/** A text that can have the character 0 or half a surrogate pair. JSON in UTF-8 can only have them as escapes. */
const UNSTORABLE = /\\u(?:0000|[dD][89a-fA-F])/;

function unwrap(type: z.ZodType): z.ZodType {
  let inner = type;
  while (inner instanceof z.ZodOptional || inner instanceof z.ZodNullable || inner instanceof z.ZodDefault) {
    inner = inner.unwrap() as z.ZodType;
  }
  return inner;
}

const TRUE = /^(?:true|t|yes|y|on|1)$/i;
const FALSE = /^(?:false|f|no|n|off|0)$/i;

/** Reads what the text of a form says of a boolean. Undefined: it says neither yes nor no. */
export function booleanIn(value: unknown): boolean | undefined {
  if (typeof value !== 'string') return undefined;
  return TRUE.test(value) ? true : FALSE.test(value) ? false : undefined;
}

/** Converts the texts of a form to the booleans, numbers and lists that the schema of the route expects. */
function coerceForm(fields: Record<string, unknown>, schema: unknown): Record<string, unknown> {
  if (!(schema instanceof z.ZodObject)) return fields;
  return Object.fromEntries(
    Object.entries(fields).map(([name, value]) => {
      const field = schema.shape[name];
      const type = field ? unwrap(field) : undefined;
      if (type instanceof z.ZodBoolean) return [name, booleanIn(value) ?? value];
      const number = type instanceof z.ZodNumber || type instanceof z.ZodLiteral;
      if (number && typeof value === 'string' && value.trim() !== '') return [name, Number(value)];
      if (type instanceof z.ZodArray && typeof value === 'string') return [name, [value]];
      return [name, value];
    }),
  );
}

type Parse = (bytes: Buffer, request: FastifyRequest) => unknown;
type Done = (error: Error | null, body?: unknown) => void;

/** Parses a body, if it is large when its turn comes. What follows at once, such as the check by a schema, is part of the turn. */
const inTurn = (parse: Parse) => (request: FastifyRequest, bytes: Buffer, done: Done) => {
  const work = () => {
    try {
      done(null, parse(bytes, request));
    } catch (error) {
      done(error as Error);
    }
  };
  if (bytes.length <= SMALL_BODY) return work();
  void nextTurn().then(() => (request.raw.socket.destroyed ? done(gone()) : work()));
};

/** Accepts JSON and forms as bodies, and refuses all other types with 415. */
export async function acceptBodies(app: FastifyInstance): Promise<void> {
  app.removeAllContentTypeParsers();
  app.addContentTypeParser<Buffer>(
    /^application\/(?:[\w.+-]+\+)?json(?:$|[\s;])/i,
    { parseAs: 'buffer' },
    inTurn((bytes, { routeOptions }) => parseJson(bytes, routeOptions.config.keepsNumbers === true)),
  );
  app.addContentTypeParser<Buffer>(FORM, { parseAs: 'buffer' }, inTurn(parseForm));
  app.addHook('preValidation', async (request) => {
    if (request.headers['content-type']?.startsWith(FORM) && request.body) {
      refuseUnstorableText(request.body);
      request.body = coerceForm(request.body as Record<string, unknown>, request.routeOptions.schema?.body);
    }
    // A missing body counts as an empty one.
    if (request.routeOptions.schema?.body && request.body === undefined) request.body = {};
  });
}
