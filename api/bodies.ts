import formbody from '@fastify/formbody';
import type { FastifyInstance } from 'fastify';
import { z } from 'zod';
import { errors } from './errors.ts';
import { refuseUnstorableText } from './validation.ts';

/** Deeper JSON is refused before it is parsed, because later steps (storing, comparing) are recursive. */
const MAX_DEPTH = 200;

/** Measures how deep a JSON text nests, without parsing it. */
export function jsonDepth(text: string): number {
  let depth = 0;
  let deepest = 0;
  let inString = false;
  for (let index = 0; index < text.length; index += 1) {
    const code = text.charCodeAt(index);
    if (inString) {
      if (code === 0x5c) index += 1;
      else if (code === 0x22) inString = false;
    } else if (code === 0x22) inString = true;
    else if (code === 0x5b || code === 0x7b) {
      depth += 1;
      if (depth > deepest) deepest = depth;
    } else if (code === 0x5d || code === 0x7d) depth -= 1;
  }
  return deepest;
}

const utf8 = new TextDecoder('utf-8', { fatal: true });

function decode(bytes: Buffer): string {
  try {
    return utf8.decode(bytes);
  } catch {
    throw errors.parseError('the text is not UTF-8');
  }
}

function parseJson(bytes: Buffer): unknown {
  const text = decode(bytes);
  if (text.trim() === '') return {};
  if (jsonDepth(text) > MAX_DEPTH) throw errors.parseError(`nested deeper than ${MAX_DEPTH} levels`);
  let value: unknown;
  try {
    value = JSON.parse(text, (key, entry) => (key === '__proto__' ? undefined : entry));
  } catch (error) {
    throw errors.parseError((error as Error).message);
  }
  refuseUnstorableText(value);
  return value;
}

function unwrap(type: z.ZodType): z.ZodType {
  let inner = type;
  while (inner instanceof z.ZodOptional || inner instanceof z.ZodNullable || inner instanceof z.ZodDefault) {
    inner = inner.unwrap() as z.ZodType;
  }
  return inner;
}

/** Converts the texts of a form to the booleans, numbers and lists that the schema of the route expects. */
function coerceForm(fields: Record<string, unknown>, schema: unknown): Record<string, unknown> {
  if (!(schema instanceof z.ZodObject)) return fields;
  return Object.fromEntries(
    Object.entries(fields).map(([name, value]) => {
      const field = schema.shape[name];
      const type = field ? unwrap(field) : undefined;
      if (type instanceof z.ZodBoolean && (value === 'true' || value === 'false'))
        return [name, value === 'true'];
      const number = type instanceof z.ZodNumber || type instanceof z.ZodLiteral;
      if (number && typeof value === 'string' && value.trim() !== '') return [name, Number(value)];
      if (type instanceof z.ZodArray && typeof value === 'string') return [name, [value]];
      return [name, value];
    }),
  );
}

/** Accepts JSON and forms as bodies, and refuses all other types with 415. */
export async function acceptBodies(app: FastifyInstance): Promise<void> {
  app.removeAllContentTypeParsers();
  app.addContentTypeParser<Buffer>(
    /^application\/(?:[\w.+-]+\+)?json(?:$|[\s;])/i,
    { parseAs: 'buffer' },
    (_request, bytes, done) => {
      try {
        done(null, parseJson(bytes));
      } catch (error) {
        done(error as Error);
      }
    },
  );
  await app.register(formbody);
  app.addHook('preValidation', async (request) => {
    if (request.headers['content-type']?.startsWith('application/x-www-form-urlencoded') && request.body) {
      refuseUnstorableText(request.body);
      request.body = coerceForm(request.body as Record<string, unknown>, request.routeOptions.schema?.body);
    }
    // A missing body counts as an empty one.
    if (request.routeOptions.schema?.body && request.body === undefined) request.body = {};
  });
}
