import { createHash, createHmac } from 'node:crypto';
import type { Call } from './api.ts';

const ALGORITHM = 'GOOG4-HMAC-SHA256';
/** The bodies of files are checked by their MD5. */
const UNSIGNED = 'UNSIGNED-PAYLOAD';

const sha256 = (text: string) => createHash('sha256').update(text).digest('hex');
const hmac = (key: string | Buffer, text: string) => createHmac('sha256', key).update(text).digest();

export interface HmacKey {
  accessKey: string;
  secret: string;
}

/** The headers that sign a request with an HMAC key of Google, version 4. `host` is that of the URL, with its port. */
export function signatureHeaders(
  { method, path, headers = {} }: Call,
  host: string,
  { accessKey, secret }: HmacKey,
  now: Date,
): Record<string, string> {
  const time = now.toISOString().replaceAll(/[-:]|\.\d+/g, '');
  const scope = `${time.slice(0, 8)}/auto/storage/goog4_request`;
  const own = { 'x-goog-date': time, 'x-goog-content-sha256': UNSIGNED };
  const signed = Object.entries({ host, ...headers, ...own })
    .filter(([name]) => name !== 'content-length')
    .map(([name, value]) => [name.toLowerCase(), String(value).trim()] as const)
    .sort(([one], [other]) => (one < other ? -1 : 1));
  const names = signed.map(([name]) => name).join(';');
  const [resource = '', query = ''] = path.split('?');
  const lines = signed.map(([name, value]) => `${name}:${value}\n`).join('');
  const request = [method, resource, query, lines, names, UNSIGNED].join('\n');
  const statement = [ALGORITHM, time, scope, sha256(request)].join('\n');
  const key = scope.split('/').reduce<string | Buffer>((at, part) => hmac(at, part), `GOOG4${secret}`);
  const signature = hmac(key, statement).toString('hex');
  return {
    ...own,
    authorization: `${ALGORITHM} Credential=${accessKey}/${scope}, SignedHeaders=${names}, Signature=${signature}`,
  };
}
