// What Sluice asks of Google Cloud Storage, in both of its languages. Service accounts speak JSON; HMAC keys can only
// sign requests of the XML API. Sessions of resumable uploads are the same in both, see upload.ts.
import { createHash } from 'node:crypto';
import type { OutgoingHttpHeaders } from 'node:http';
import { objectIn } from '../../values/json-object.ts';

/** The generation of an object, as Google numbers them. 0 stands for "there is none". */
export type Generation = string;
export const NONE: Generation = '0';

export interface Call {
  method: 'GET' | 'HEAD' | 'POST' | 'PUT' | 'DELETE';
  /** The path and the query, encoded. */
  path: string;
  headers?: OutgoingHttpHeaders;
  body?: Buffer;
}

export interface Answer {
  status: number;
  headers: Record<string, string | string[] | undefined>;
  text: string;
}

/** An object as the bucket has it. */
export interface Found {
  generation: Generation;
  /** Null if it is no object of Sluice. */
  mark: string | null;
}

/** What an upload makes of its bytes. The generation is the one that it may replace. */
export interface NewObject {
  key: string;
  replaces: Generation;
  metadata: Readonly<Record<string, string>>;
  contentType: string;
}

export interface Api {
  /** Fails if there is no bucket. */
  list(): Call;
  find(key: string): Call;
  found(answer: Answer): Found;
  content(key: string): Call;
  put(object: NewObject, bytes: Buffer): Call;
  /** Begins a resumable upload. Its session is the `Location` of the answer. */
  begin(object: NewObject): Call;
  remove(key: string, seen?: Generation): Call;
  /** The MD5 of a new object in base64, if the answer to its end tells. */
  md5(answer: Answer): string | undefined;
  /** What a refusal says. */
  refusal(text: string): { code: string; message: string };
}

/** The metadata that tells an object from every other one. */
export const MARK = 'sluice-attempt';

export const md5Of = (bytes: Buffer): string => createHash('md5').update(bytes).digest('base64');

const one = (value: string | string[] | undefined): string | undefined =>
  Array.isArray(value) ? value[0] : value;

const fieldsOf = (text: string): Record<string, unknown> => objectIn(text) ?? {};

/** The JSON API. */
export function jsonApi(bucket: string): Api {
  const objects = `/storage/v1/b/${encodeURIComponent(bucket)}/o`;
  const at = (key: string) => `${objects}/${encodeURIComponent(key)}`;
  const uploads = (type: string, { key, replaces }: NewObject) =>
    `/upload${objects}?${new URLSearchParams({ uploadType: type, name: key, ifGenerationMatch: replaces })}`;
  const properties = ({ key, metadata, contentType }: NewObject) => ({ name: key, metadata, contentType });
  return {
    list: () => ({ method: 'GET', path: `${objects}?maxResults=1` }),
    find: (key) => ({ method: 'GET', path: at(key) }),
    found({ text }) {
      const { generation, metadata } = fieldsOf(text);
      const mark = (metadata as Record<string, unknown> | undefined)?.[MARK];
      return { generation: String(generation ?? NONE), mark: typeof mark === 'string' ? mark : null };
    },
    content: (key) => ({ method: 'GET', path: `${at(key)}?alt=media` }),
    put(object, bytes) {
      const boundary = `sluice-${createHash('sha256').update(bytes).digest('hex')}`;
      const described = JSON.stringify({ ...properties(object), md5Hash: md5Of(bytes) });
      const head = `--${boundary}\r\ncontent-type: application/json\r\n\r\n${described}\r\n`;
      const next = `--${boundary}\r\ncontent-type: ${object.contentType}\r\n\r\n`;
      return {
        method: 'POST',
        path: uploads('multipart', object),
        headers: { 'content-type': `multipart/related; boundary=${boundary}` },
        body: Buffer.concat([Buffer.from(head + next), bytes, Buffer.from(`\r\n--${boundary}--\r\n`)]),
      };
    },
    begin: (object) => ({
      method: 'POST',
      path: uploads('resumable', object),
      headers: { 'content-type': 'application/json' },
      body: Buffer.from(JSON.stringify(properties(object))),
    }),
    remove: (key, seen) => ({
      method: 'DELETE',
      path: seen === undefined ? at(key) : `${at(key)}?ifGenerationMatch=${encodeURIComponent(seen)}`,
    }),
    md5({ text }) {
      const { md5Hash } = fieldsOf(text);
      return typeof md5Hash === 'string' ? md5Hash : undefined;
    },
    refusal(text) {
      const { code, message, errors } = (fieldsOf(text).error ?? {}) as Record<string, unknown>;
      const [first] = Array.isArray(errors) ? errors : [];
      const reason = (first as { reason?: unknown } | undefined)?.reason;
      return { code: String(reason ?? code ?? ''), message: String(message ?? '') };
    },
  };
}

/** The path of an object or a bucket as it is sent and signed. */
const xmlPath = (...names: string[]): string =>
  names
    .map(
      (name) =>
        `/${encodeURIComponent(name)
          .replaceAll('%2F', '/')
          .replaceAll(/[!'()*]/g, hex)}`,
    )
    .join('');

const hex = (sign: string): string => `%${sign.charCodeAt(0).toString(16).toUpperCase()}`;

/** The XML API. */
export function xmlApi(bucket: string): Api {
  const at = (key: string) => xmlPath(bucket, key);
  const headersOf = ({ replaces, metadata, contentType }: NewObject) => ({
    ...Object.fromEntries(Object.entries(metadata).map(([name, value]) => [`x-goog-meta-${name}`, value])),
    'x-goog-if-generation-match': replaces,
    'content-type': contentType,
  });
  return {
    list: () => ({ method: 'GET', path: `${xmlPath(bucket)}?max-keys=1` }),
    find: (key) => ({ method: 'HEAD', path: at(key) }),
    found: ({ headers }) => ({
      generation: one(headers['x-goog-generation']) ?? NONE,
      mark: one(headers[`x-goog-meta-${MARK}`]) ?? null,
    }),
    content: (key) => ({ method: 'GET', path: at(key) }),
    put: (object, bytes) => ({
      method: 'PUT',
      path: at(object.key),
      headers: { ...headersOf(object), 'content-md5': md5Of(bytes) },
      body: bytes,
    }),
    begin: (object) => ({
      method: 'POST',
      path: at(object.key),
      headers: { ...headersOf(object), 'x-goog-resumable': 'start', 'content-length': 0 },
    }),
    remove: (key, seen) => ({
      method: 'DELETE',
      path: at(key),
      ...(seen === undefined ? {} : { headers: { 'x-goog-if-generation-match': seen } }),
    }),
    md5: ({ headers }) => /(?:^|[\s,])md5=([\w+/]+=*)/.exec(String(headers['x-goog-hash'] ?? ''))?.[1],
    refusal: (text) => ({
      code: /<Code>([^<]*)<\/Code>/.exec(text)?.[1] ?? '',
      message: /<Message>([^<]*)<\/Message>/.exec(text)?.[1] ?? '',
    }),
  };
}
