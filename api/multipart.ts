import type { FastifyInstance } from 'fastify';
import { errors } from './errors.ts';

/** The fields of a form, and its files as texts. */
export type FormFields = Record<string, string>;

const utf8 = new TextDecoder('utf-8', { fatal: true });

async function textOf(value: string | File): Promise<string> {
  if (typeof value === 'string') return value;
  try {
    return utf8.decode(await value.arrayBuffer());
  } catch {
    throw errors.parseError('the file is not UTF-8');
  }
}

/** Lets the routes of a scope read forms with files, which are small enough to be read as a whole. */
export function acceptForms(app: FastifyInstance, mostBytes: number): void {
  app.addContentTypeParser<Buffer>(
    /^multipart\/form-data(?:$|[\s;])/i,
    { parseAs: 'buffer', bodyLimit: mostBytes },
    async (request: { headers: Record<string, unknown> }, bytes: Buffer) => {
      const headers = { 'content-type': String(request.headers['content-type']) };
      const form = await new Response(new Uint8Array(bytes), { headers }).formData().catch(() => {
        throw errors.parseError('the parts of the form cannot be read');
      });
      const fields: FormFields = {};
      for (const [name, value] of form) {
        const text = await textOf(value);
        if (text.includes('\u0000')) throw errors.parseError(`${name.slice(0, 60)} contains the character 0`);
        Object.defineProperty(fields, name, { value: text, enumerable: true });
      }
      return fields;
    },
  );
}
