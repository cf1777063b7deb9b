import type { FastifyInstance } from 'fastify';
import { z } from 'zod';
import { pacing } from '../db/loop-turns.ts';
import { PIECE } from './pieces.ts';

/** How a list is written. */
interface ListSchema {
  /** The schema of one result. */
  result: z.ZodType;
  /** Takes an answer apart: into its results, and the text before and after them. */
  parts(answer: unknown): { results: readonly unknown[]; head: string; end: string };
}

/** Returns undefined for the schema of something that is no list. */
function listSchema(schema: unknown): ListSchema | undefined {
  if (schema instanceof z.ZodArray) {
    const parts = (answer: unknown) => ({ results: answer as readonly unknown[], head: '[', end: ']' });
    return { result: schema.element as z.ZodType, parts };
  }
  if (!(schema instanceof z.ZodObject) || !(schema.shape.results instanceof z.ZodArray)) return undefined;
  const besides = schema.omit({ results: true });
  return {
    result: schema.shape.results.element as z.ZodType,
    parts(answer) {
      const { results, ...rest } = answer as { results: readonly unknown[] };
      const fields = JSON.stringify(z.encode(besides, rest)).slice(0, -1);
      return { results, head: `${fields}${fields === '{' ? '' : ','}"results":[`, end: ']}' };
    },
  };
}

/** Writes a list as JSON. It may have many megabytes, so others have their turn between the results. */
async function listText(schema: ListSchema, answer: unknown): Promise<string | Buffer> {
  const { results, head, end } = schema.parts(answer);
  const pace = pacing();
  const pieces: Buffer[] = [];
  let text = head;
  for (const [index, result] of results.entries()) {
    text += `${index === 0 ? '' : ','}${JSON.stringify(z.encode(schema.result, result))}`;
    if (text.length > PIECE) {
      pieces.push(Buffer.from(text));
      text = '';
    }
    const rested = pace();
    if (rested) await rested;
  }
  text += end;
  return pieces.length === 0 ? text : Buffer.concat([...pieces, Buffer.from(text)]);
}

/** Writes the lists of all routes that are added later, and whose schema is that of a list, in pieces. */
export function writeListsInPieces(app: FastifyInstance): void {
  const known = new WeakMap<object, ListSchema | undefined>();
  const schemaOf = (responses: unknown): ListSchema | undefined => {
    if (typeof responses !== 'object' || responses === null) return undefined;
    if (!known.has(responses)) known.set(responses, listSchema((responses as { 200?: unknown })[200]));
    return known.get(responses);
  };
  app.addHook('preSerialization', async (request, reply, payload) => {
    const schema = reply.statusCode === 200 ? schemaOf(request.routeOptions.schema?.response) : undefined;
    if (!schema) return payload;
    // What is written already needs no schema any more.
    reply.serializer((text: unknown) => text as string);
    return listText(schema, payload);
  });
}
