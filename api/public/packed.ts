import { createHash } from 'node:crypto';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import type { Answer } from './answer.ts';
import type { LaneRequest } from './direct.ts';

const compress = promisify(gzip);
const NOTHING = Buffer.alloc(0);
/** A smaller text is not worth it. */
const WORTH_PACKING = 1024;

/** A text that is served many times: its bytes, and the same compressed. */
export interface Packed {
  plain: Buffer;
  /** Empty: the text is too small. */
  gzip: Buffer;
  etag: string;
}

export async function packed(text: string): Promise<Packed> {
  const plain = Buffer.from(text);
  return {
    plain,
    gzip: plain.length < WORTH_PACKING ? NOTHING : await compress(plain),
    // Weak: the same for both forms.
    etag: `W/"${createHash('sha256').update(plain).digest('base64url').slice(0, 22)}"`,
  };
}

/** Whether a client reads gzip. The header is divided by hand: patterns take long for texts that are made for that. */
function acceptsGzip(header: string | string[] | undefined): boolean {
  return String(header ?? '')
    .split(',')
    .some((one) => {
      const [name = '', ...parameters] = one.split(';').map((part) => part.trim().toLowerCase());
      const quality = parameters.find((part) => part.startsWith('q='));
      return (name === 'gzip' || name === '*') && (quality === undefined || Number(quality.slice(2)) > 0);
    });
}

/** A tag without its marks. Clients and proxies write back `W/"a"`, `"a"` or `a`. */
const bareTag = (tag: string) => tag.replace(/^W\//, '').replace(/^"(.*)"$/, '$1');

/** Answers with the form that the client understands, or with 304 if it has the text already. */
export function packedAnswer(
  { headers }: Pick<LaneRequest, 'headers'>,
  { plain, gzip, etag }: Packed,
  type: string,
  cache: string,
): Answer {
  const own = ['cache-control', cache, 'etag', etag];
  const known = headers['if-none-match'];
  const vary = 'Accept-Encoding';
  const isKnown = (tag: string) => tag === '*' || bareTag(tag) === bareTag(etag);
  if (known?.split(',').some((one) => isKnown(one.trim()))) {
    return { status: 304, body: '', headers: own, vary };
  }
  own.push('content-type', `${type}; charset=utf-8`);
  if (gzip.length === 0 || !acceptsGzip(headers['accept-encoding'])) {
    return { status: 200, body: plain, headers: own, vary };
  }
  return { status: 200, body: gzip, headers: [...own, 'content-encoding', 'gzip'], vary };
}
