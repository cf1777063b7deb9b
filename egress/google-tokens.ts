// Gets access tokens for service accounts of Google: a signed statement is exchanged for a token that lasts an hour.
import { createHash, createPrivateKey, sign } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import { objectIn } from '../values/json-object.ts';
import type { Egress } from './egress.ts';

/** A service account, and what its tokens are for. */
export interface GoogleAccount {
  clientEmail: string;
  privateKey: string;
  tokenUrl: string;
  /** Separated by spaces. */
  scope: string;
}

interface AccessTokenErrorOptions {
  cause?: unknown;
  status?: number;
}

/** Google refused to give a token, or could not be asked. The message contains no secret. */
export class AccessTokenError extends Error {
  override readonly name = 'AccessTokenError';
  /** What it answered. Undefined: nothing came of it, and the cause says why. */
  readonly status: number | undefined;
  constructor(message: string, { cause, status }: AccessTokenErrorOptions = {}) {
    super(message, cause === undefined ? undefined : { cause });
    this.status = status;
  }
}

interface Kept {
  token: Promise<string>;
  /** Milliseconds. */
  until: number;
}

const GRANT = 'urn:ietf:params:oauth:grant-type:jwt-bearer';
const LIFETIME = 3_600;
/** A token is replaced so many milliseconds before its end, so that it does not end in the middle of a run. */
const SPARE = 5 * 60_000;
const TIMEOUT = 10_000;
const LONGEST_ANSWER = 64 * 1024;
const LONGEST_REASON = 300;
const MOST_KEPT = 1_000;

const encoded = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');

/** Keeps the tokens of accounts until shortly before their end. Those who ask at the same time share one request. */
export class AccessTokens {
  readonly #egress: Pick<Egress, 'fetch'>;
  readonly #clock: () => number;
  readonly #kept = new LRUCache<string, Kept>({ max: MOST_KEPT });

  constructor(egress: Pick<Egress, 'fetch'>, clock: () => number = Date.now) {
    this.#egress = egress;
    this.#clock = clock;
  }

  /** Returns a token of an account. Throws an AccessTokenError. */
  tokenFor(account: GoogleAccount): Promise<string> {
    const key = createHash('sha256').update(JSON.stringify(account)).digest('hex');
    const kept = this.#kept.get(key);
    if (kept && kept.until > this.#clock()) return kept.token;
    const entry: Kept = { token: Promise.resolve(''), until: Number.POSITIVE_INFINITY };
    entry.token = this.#ask(account).then(
      ({ token, seconds }) => {
        entry.until = this.#clock() + seconds * 1_000 - SPARE;
        return token;
      },
      (error: unknown) => {
        if (this.#kept.peek(key) === entry) this.#kept.delete(key);
        throw error;
      },
    );
    this.#kept.set(key, entry);
    return entry.token;
  }

  async #ask(account: GoogleAccount): Promise<{ token: string; seconds: number }> {
    const fail = (reason: string, options?: AccessTokenErrorOptions) =>
      new AccessTokenError(`Google gave no access token for ${account.clientEmail}: ${reason}`, options);
    const assertion = assertionOf(account, this.#clock(), fail);
    const body = new URLSearchParams({ grant_type: GRANT, assertion });
    const answer = await this.#egress
      .fetch(account.tokenUrl, {
        method: 'POST',
        headers: { 'content-type': 'application/x-www-form-urlencoded' },
        body: body.toString(),
        timeoutMilliseconds: TIMEOUT,
        maxAnswerBytes: LONGEST_ANSWER,
      })
      .catch((error: Error) => {
        throw fail(error.message, { cause: error });
      });
    const { access_token: token, expires_in: seconds, ...said } = fieldsOf(answer.body.toString('utf8'));
    if (answer.status === 200 && typeof token === 'string' && token !== '') {
      return { token, seconds: typeof seconds === 'number' ? seconds : LIFETIME };
    }
    const { status } = answer;
    // A server may repeat the statement, by which somebody else could get a token.
    const reason = String(said.error_description ?? said.error ?? 'an answer without a token')
      .replaceAll(assertion, '***')
      .slice(0, LONGEST_REASON);
    throw fail(`${status}, ${reason}`, { status });
  }
}

/** The statement of an account that it wants a token, signed with its key. */
function assertionOf(
  { clientEmail, privateKey, tokenUrl, scope }: GoogleAccount,
  now: number,
  fail: (reason: string) => Error,
): string {
  const issued = Math.floor(now / 1_000);
  const claims = { iss: clientEmail, scope, aud: tokenUrl, iat: issued, exp: issued + LIFETIME };
  const statement = `${encoded({ alg: 'RS256', typ: 'JWT' })}.${encoded(claims)}`;
  try {
    return `${statement}.${sign('RSA-SHA256', Buffer.from(statement), createPrivateKey(privateKey)).toString('base64url')}`;
  } catch {
    throw fail('the private key of its key file cannot be used');
  }
}

const fieldsOf = (text: string): Record<string, unknown> => objectIn(text) ?? {};
