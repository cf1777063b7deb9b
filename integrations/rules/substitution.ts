// Programs see placeholders in place of secrets. Just before a request leaves, the secrets take their places.
import { createHmac } from 'node:crypto';
import { hostAllowed } from './hosts.ts';

/** A secret, or something that is made of secrets, and what stands for it. */
export interface Placeholder {
  /** The name that programs know, such as `access_token`. */
  name: string;
  /** What programs see as its value. */
  marker: string;
  value: string;
  /** `url`: a whole URL, with which the URL of a request begins. It is not encoded there. */
  form: 'text' | 'url';
}

/** How requests are signed, for kinds whose secrets never leave as they are. */
export type Signing =
  | {
      scheme: 'aws-sigv4';
      accessKeyId: string;
      secretAccessKey: string;
      sessionToken: string | null;
      region: string;
    }
  | { scheme: 'google-jwt'; clientEmail: string; privateKey: string; tokenUrl: string; scope: string };

/** What the runtime knows of an integration and its programs do not. It is never logged and never stored. */
export interface Substitution {
  integrationId: number;
  kind: string;
  placeholders: readonly Placeholder[];
  /** The only hosts to which the values may go; see `hostAllowed`. */
  hosts: readonly string[];
  /** Null: the placeholders are all that there is. */
  signing: Signing | null;
}

export interface OutgoingRequest {
  url: string;
  headers: Readonly<Record<string, string>>;
  body: string | null;
}

/** A request would take a secret where it must not go. The message contains no secret. */
export class SubstitutionError extends Error {
  override readonly name = 'SubstitutionError';
}

/**
 * Returns what stands for a secret in one run. The seed is random and only the runtime knows it, so nobody can guess the
 * marker, and it is the same when the run continues in another process. Its characters have the same form in URLs, JSON and
 * forms.
 */
export const markerOf = (seed: string, integrationId: number, name: string): string =>
  `secret_${createHmac('sha256', seed).update(`${integrationId}/${name}`).digest('hex').slice(0, 40)}`;

/** Lists the values that no log and no error may contain. */
export const secretValues = (substitutions: readonly Substitution[]): string[] => [
  ...new Set(
    substitutions.flatMap(({ placeholders, signing }) => [
      ...placeholders.map((one) => one.value),
      ...(signing?.scheme === 'aws-sigv4' ? [signing.accessKeyId, signing.secretAccessKey] : []),
      ...(signing?.scheme === 'aws-sigv4' && signing.sessionToken !== null ? [signing.sessionToken] : []),
      ...(signing?.scheme === 'google-jwt' ? [signing.privateKey] : []),
    ]),
  ),
];

/**
 * Puts the secrets into a request. Throws a SubstitutionError if a placeholder occurs and its secret may not go to the host
 * of the URL, or if it occurs in a form in which it cannot be replaced.
 */
export function substitute(
  request: OutgoingRequest,
  substitutions: readonly Substitution[],
): OutgoingRequest {
  const { url, headers, body } = request;
  const all = substitutions.flatMap((of) => of.placeholders.map((placeholder) => ({ of, placeholder })));
  const names = Object.keys(headers);
  const texts = [url, ...names, ...Object.values(headers), body ?? ''];
  const found = all.filter(({ placeholder: { marker } }) => texts.some((text) => text.includes(marker)));
  const seen = texts.filter((text) => text !== '').map(seenThrough);
  for (const { of, placeholder } of all) {
    if (seen.some((text) => isHidden(text, placeholder.marker))) {
      throw new SubstitutionError(
        `${called(of, placeholder)} is encoded in this request, so it cannot be put in. Use it as it is, or use ` +
          'the placeholder `authorization` if there is one.',
      );
    }
    if (names.some((name) => name.includes(placeholder.marker))) {
      throw new SubstitutionError(`${called(of, placeholder)} must not be a part of the name of a header.`);
    }
  }
  if (found.length === 0) return request;
  const put = (text: string, form: (one: Placeholder, at: number) => string) => {
    const pattern = new RegExp(found.map((one) => one.placeholder.marker).join('|'), 'g');
    const byMarker = new Map(found.map(({ placeholder }) => [placeholder.marker, placeholder]));
    return text.replace(pattern, (marker, at: number) => form(byMarker.get(marker) as Placeholder, at));
  };
  const target = URL.parse(put(url, inUrl));
  for (const { of, placeholder } of found) {
    if (target && hostAllowed(of, target)) continue;
    throw new SubstitutionError(
      `${called(of, placeholder)} must not be sent to ${hostOf(url, found)}. It may be sent to ${of.hosts.join(', ')}` +
        ', with https.',
    );
  }
  return {
    url: (target as URL).href,
    headers: Object.fromEntries(
      names.map((name) => [name, put(headers[name] as string, (one) => one.value)]),
    ),
    body: body === null ? null : put(body, inBody(headers, body)),
  };
}

/**
 * Returns the keys with which requests to AWS are signed. Throws a SubstitutionError if the integration has none, or if they
 * may not be used for the host of the URL.
 */
export function awsKeysOf(substitutions: readonly Substitution[], integrationId: number, url: string) {
  const of = substitutions.find((one) => one.integrationId === integrationId);
  const signing = of?.signing;
  if (!of || signing?.scheme !== 'aws-sigv4') {
    throw new SubstitutionError(`The integration ${integrationId} has no keys for AWS.`);
  }
  if (!hostAllowed(of, url)) {
    throw new SubstitutionError(
      `The keys of the integration ${integrationId} (${of.kind}) must not sign requests to ${hostOf(url, [])}. They may sign ` +
        `requests to ${of.hosts.join(', ')}, with https.`,
    );
  }
  const { accessKeyId, secretAccessKey, sessionToken, region } = signing;
  return { accessKeyId, secretAccessKey, sessionToken, region };
}

const called = ({ integrationId, kind }: Substitution, { name }: Placeholder): string =>
  `The secret \`${name}\` of the integration ${integrationId} (${kind})`;

/** Names the host of a URL. A host that a secret is a part of is not named. */
function hostOf(url: string, found: readonly { placeholder: Placeholder }[]): string {
  const host = URL.parse(url)?.host;
  if (!host || found.some(({ placeholder }) => host.includes(placeholder.marker))) return 'this URL';
  return host;
}

function inUrl({ form, value }: Placeholder, at: number): string {
  if (form === 'url' && at === 0) return value;
  // Paths of some services contain a secret with a colon, and do not decode it.
  return encodeURIComponent(value).replaceAll('%3A', ':');
}

/** Returns how values are written in a body. */
function inBody(headers: OutgoingRequest['headers'], body: string): (one: Placeholder) => string {
  const [, type = ''] = Object.entries(headers).find(([name]) => name.toLowerCase() === 'content-type') ?? [];
  const isJson = type === '' ? /^\s*[[{"]/.test(body) : /\bjson\b/i.test(type);
  if (isJson) return ({ value }) => JSON.stringify(value).slice(1, -1);
  if (/^application\/x-www-form-urlencoded\b/i.test(type)) return ({ value }) => encodeURIComponent(value);
  return ({ value }) => value;
}

/** A text, and what it is in other encodings. */
interface SeenThrough {
  plain: string;
  decoded: string;
  lower: string;
}

const seenThrough = (plain: string): SeenThrough => ({
  plain,
  decoded: plain.replace(/%([0-9a-f]{2})/gi, (_, hex: string) =>
    String.fromCharCode(Number.parseInt(hex, 16)),
  ),
  lower: plain.toLowerCase(),
});

/** Answers whether a text contains a marker in another form: in percent or hexadecimal encoding, or in base64. */
function isHidden({ plain, decoded, lower }: SeenThrough, marker: string): boolean {
  const count = (text: string) => text.split(marker).length;
  if (count(decoded) > count(plain)) return true;
  if (lower.includes(Buffer.from(marker).toString('hex'))) return true;
  return base64Forms(marker).some((form) => decoded.includes(form));
}

/** The parts of base64 that depend on the marker alone, wherever it stands in the encoded text. */
function base64Forms(marker: string): string[] {
  return [0, 1, 2].flatMap((before) => {
    const bytes = Buffer.concat([Buffer.alloc(before), Buffer.from(marker)]);
    const from = Math.ceil((before * 8) / 6);
    const to = Math.floor((bytes.length * 8) / 6);
    return [bytes.toString('base64').slice(from, to), bytes.toString('base64url').slice(from, to)];
  });
}
