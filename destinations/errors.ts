import { causesOf, egressRefusal } from '../egress/egress-refused.ts';
import { NoAnswerError } from '../egress/no-answer.ts';

/**
 * Everything that can go wrong at a destination. `again` says whether the same work may succeed later; if not, the
 * operator must act first. `soon` says whether a pause of seconds may be enough; then the request itself is repeated.
 */
const CODES = {
  'not-configured': { again: false, soon: false },
  'egress-refused': { again: false, soon: false },
  'unknown-host': { again: false, soon: false },
  untrusted: { again: false, soon: false },
  denied: { again: false, soon: false },
  missing: { again: false, soon: false },
  mismatch: { again: false, soon: false },
  rejected: { again: false, soon: false },
  occupied: { again: false, soon: false },
  full: { again: false, soon: false },
  unreachable: { again: true, soon: true },
  'timed-out': { again: true, soon: true },
  interrupted: { again: true, soon: true },
  throttled: { again: true, soon: true },
  unavailable: { again: true, soon: true },
  conflict: { again: true, soon: false },
  'no-space': { again: true, soon: false },
  overtaken: { again: true, soon: false },
  unexpected: { again: true, soon: false },
} as const;

export type DestinationErrorCode = keyof typeof CODES;

interface DestinationErrorOptions {
  cause?: unknown;
  /** How long the destination asks Sluice to wait. */
  retryAfterMilliseconds?: number | undefined;
}

/** An error at a destination. The message names place and value, never a secret. Users do not see the cause. */
export class DestinationError extends Error {
  override name = 'DestinationError';
  readonly code: DestinationErrorCode;
  /** False if every retry fails until the operator acts. */
  readonly retryable: boolean;
  readonly soon: boolean;
  readonly retryAfterMilliseconds: number | undefined;

  constructor(code: DestinationErrorCode, message: string, options: DestinationErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.code = code;
    this.retryable = CODES[code].again;
    this.soon = CODES[code].soon;
    this.retryAfterMilliseconds = options.retryAfterMilliseconds;
  }
}

/** The configuration is not valid for its type of destination. The message is for whoever sent it. */
export class DestinationConfigError extends Error {
  override name = 'DestinationConfigError';
  /** The wrong key, if it is a single one. */
  readonly field: string | undefined;

  constructor(message: string, field?: string) {
    super(message);
    this.field = field;
  }
}

/** Shorter values would match parts of ordinary words, and are not real secrets. */
const SHORTEST_SECRET = 4;

const inJson = (text: string) => JSON.stringify(text).slice(1, -1);
const escaped = (text: string, quote: string, apostrophe: string) =>
  text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', quote)
    .replaceAll("'", apostrophe);

/** How a server may write what it was sent: as it is, or inside of JSON, a URL, XML, HTML or a header. */
function formsOf(secret: string): string[] {
  const bytes = Buffer.from(secret);
  const url = encodeURIComponent(secret.toWellFormed());
  return [
    ...[secret, inJson(secret), inJson(inJson(secret))],
    ...[url, url.replaceAll('%20', '+'), url.toLowerCase()],
    // Some escape the quotes, too.
    ...[escaped(secret, '"', "'"), escaped(secret, '&quot;', "'"), escaped(secret, '&quot;', '&apos;')],
    ...[
      escaped(secret, '&quot;', '&#39;'),
      escaped(secret, '&#34;', '&#39;'),
      escaped(secret, '&quot;', '&#x27;'),
    ],
    ...[bytes.toString('base64').replace(/=+$/, ''), bytes.toString('base64url'), bytes.toString('hex')],
  ];
}

/** Replaces every secret in a text, in whatever form a server may have written it. */
export function withoutSecrets(text: string, secrets: readonly string[]): string {
  const forms = secrets.filter((secret) => secret.length >= SHORTEST_SECRET).flatMap(formsOf);
  return [...new Set(forms)]
    .sort((one, other) => other.length - one.length)
    .reduce((clean, form) => clean.replaceAll(form, '***'), text);
}

const NETWORK: Record<string, [DestinationErrorCode, string]> = {
  ENOTFOUND: ['unknown-host', 'there is no host of that name'],
  EAI_AGAIN: ['unreachable', 'the name of the host could not be looked up'],
  ECONNREFUSED: ['unreachable', 'the connection was refused'],
  EHOSTUNREACH: ['unreachable', 'the host cannot be reached'],
  ENETUNREACH: ['unreachable', 'the network cannot be reached'],
  EADDRNOTAVAIL: ['unreachable', 'the host cannot be reached'],
  ECONNRESET: ['interrupted', 'the connection was cut'],
  EPIPE: ['interrupted', 'the connection was cut'],
  ECONNABORTED: ['interrupted', 'the connection was cut'],
  UND_ERR_SOCKET: ['interrupted', 'the connection was cut'],
  HPE_INVALID_CONSTANT: ['unavailable', 'the answer is not one of HTTP'],
  ETIMEDOUT: ['timed-out', 'no answer came in time'],
  ESOCKETTIMEDOUT: ['timed-out', 'no answer came in time'],
  UND_ERR_CONNECT_TIMEOUT: ['timed-out', 'the connection could not be made in time'],
  UND_ERR_HEADERS_TIMEOUT: ['timed-out', 'no answer came in time'],
  UND_ERR_BODY_TIMEOUT: ['timed-out', 'the answer did not end in time'],
  EPROTO: ['untrusted', 'the server does not speak TLS there'],
  ERR_SSL_WRONG_VERSION_NUMBER: ['untrusted', 'the server does not speak TLS there'],
  ERR_SSL_PACKET_LENGTH_TOO_LONG: ['untrusted', 'the server does not speak TLS there'],
};
const CERTIFICATE = /^(ERR_TLS_CERT|CERT_|DEPTH_ZERO_|SELF_SIGNED_|UNABLE_TO_|INVALID_CA|HOSTNAME_MISMATCH)/;

function codeOf(error: unknown): string | undefined {
  for (const one of causesOf(error)) {
    const { code, message } = one as { code?: unknown; message?: unknown };
    if (typeof code === 'string' && (Object.hasOwn(NETWORK, code) || CERTIFICATE.test(code))) return code;
    // Clients that wrap an error may keep only its text, `connect ECONNREFUSED 192.0.2.1:443`.
    const named = /\b(?:connect|read|write|getaddrinfo) (E[A-Z_]+)\b/.exec(String(message))?.[1];
    if (named !== undefined && Object.hasOwn(NETWORK, named)) return named;
  }
  return undefined;
}

function silenceOf(error: unknown): NoAnswerError | undefined {
  for (const one of causesOf(error)) if (one instanceof NoAnswerError) return one;
  return undefined;
}

/** The error of a failure below the destination's protocol: a refusal by the guard, the network, TLS. */
export function networkError(error: unknown, place: string): DestinationError | undefined {
  const refusal = egressRefusal(error);
  if (refusal)
    return new DestinationError('egress-refused', `${place}: ${refusal.message}`, { cause: error });
  const silence = silenceOf(error);
  if (silence) return new DestinationError('timed-out', `${place}: ${silence.message}`, { cause: error });
  const code = codeOf(error);
  if (code === undefined) return undefined;
  const [kind, text] = NETWORK[code] ?? [
    'untrusted' as const,
    `the certificate of the server is not trusted (${code})`,
  ];
  return new DestinationError(kind, `${place}: ${text}`, { cause: error });
}
