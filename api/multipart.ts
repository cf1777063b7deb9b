import type { FastifyInstance } from 'fastify';
import { errors } from './errors.ts';

/** The fields of a form, and its files as texts. */
export type FormFields = Record<string, string>;

const utf8 = new TextDecoder('utf-8', { fatal: true });
const MOST_PARTS = 100;
const LONGEST_HEAD = 8 * 1024;
const NEW_LINE = '\r\n';

function textOf(bytes: Buffer): string {
  try {
    return utf8.decode(bytes);
  } catch {
    throw errors.parseError('the file is not UTF-8');
  }
}

const unreadable = () => errors.parseError('the parts of the form cannot be read');

/** Finds the boundary between the parts of a form. */
function boundaryIn(type: string): string {
  const found = /;\s*boundary=(?:"([^"]{1,70})"|([^\s;"]{1,70}))/i.exec(type);
  const boundary = found?.[1] ?? found?.[2];
  if (boundary === undefined) throw unreadable();
  return boundary;
}

/** The name of the field that a part has. Browsers write quotation marks in names as `%22`. */
function nameIn(head: string): string {
  const disposition = head.split(NEW_LINE).find((line) => /^content-disposition:\s*form-data\b/i.test(line));
  const name = /;\s*name="([^"]*)"/i.exec(disposition ?? '')?.[1];
  if (name === undefined) throw unreadable();
  return name
    .replace(/%0[aA]/g, '\n')
    .replace(/%0[dD]/g, '\r')
    .replaceAll('%22', '"');
}

/** Takes a form apart. It looks for boundaries only, so the length of the parts hardly matters. */
function* partsOf(bytes: Buffer, boundary: string): Generator<{ name: string; content: Buffer }> {
  const first = `--${boundary}`;
  const next = NEW_LINE + first;
  let at = bytes.indexOf(first);
  if (at !== 0 && !(at >= 2 && bytes.toString('latin1', at - 2, at) === NEW_LINE)) throw unreadable();
  at += first.length;
  for (let count = 1; bytes.toString('latin1', at, at + 2) !== '--'; count += 1) {
    if (count > MOST_PARTS) throw errors.parseError(`the form has more than ${MOST_PARTS} parts`);
    if (bytes.toString('latin1', at, at + 2) !== NEW_LINE) throw unreadable();
    const headEnd = bytes.indexOf(NEW_LINE + NEW_LINE, at);
    if (headEnd < 0 || headEnd - at > LONGEST_HEAD) throw unreadable();
    const end = bytes.indexOf(next, headEnd + 2);
    if (end < 0) throw unreadable();
    const name = nameIn(textOf(bytes.subarray(at, headEnd)));
    yield { name, content: bytes.subarray(headEnd + 4, Math.max(headEnd + 4, end)) };
    at = end + next.length;
  }
}

/** Lets the routes of a scope read forms with files, which are small enough to be read as a whole. */
export function acceptForms(app: FastifyInstance, mostBytes: number): void {
  app.addContentTypeParser<Buffer>(
    /^multipart\/form-data(?:$|[\s;])/i,
    { parseAs: 'buffer', bodyLimit: mostBytes },
    async (request: { headers: Record<string, unknown> }, bytes: Buffer) => {
      const fields: FormFields = {};
      for (const { name, content } of partsOf(bytes, boundaryIn(String(request.headers['content-type'])))) {
        const text = textOf(content);
        if (text.includes('\u0000')) throw errors.parseError(`${name.slice(0, 60)} contains the character 0`);
        Object.defineProperty(fields, name, { value: text, enumerable: true, configurable: true });
      }
      return fields;
    },
  );
}
