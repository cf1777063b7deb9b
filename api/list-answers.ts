import type { FastifyInstance } from 'fastify';
import { z } from 'zod';
import { pacing } from '../db/loop-turns.ts';
import { PIECE } from './pieces.ts';

/** The parts of the schema of a list: of one result, and of all that stands beside the results. */
interface ListSchema {
  result: z.ZodType;
  rest: z.ZodObject;
}

function listSchema(schema: unknown): ListSchema | undefined {
  if (!(schema instanceof z.ZodObject)) return undefined;
  const { results } = schema.shape;
  if (!(results instanceof z.ZodArray)) return undefined;
  return { result: results.element as z.ZodType, rest: schema.omit({ results: true }) };
}

/** Writes a list as JSON. It may have many megabytes, so others have their turn between the results. */
async function listText(schema: ListSchema, list: { results: readonly unknown[] }): Promise<string | Buffer> {
  const { results, ...rest } = list;
  const pace = pacing();
  const pieces: Buffer[] = [];
  const beside = JSON.stringify(z.encode(schema.rest, rest)).slice(0, -1);
  let text = `${beside}${beside === '{' ? '' : ','}"results":[`;
  for (const [index, result] of results.entries()) {
    text += `${index === 0 ? '' : ','}${JSON.stringify(z.encode(schema.result, result))}`;
    if (text.length > PIECE) {
      pieces.push(Buffer.from(text));
      text = '';
    }
    const rested = pace();
    if (rested) await rested;
  }
  text += ']}';
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
    return listText(schema, payload as { results: readonly unknown[] });
  });
}
