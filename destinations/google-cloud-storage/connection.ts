import type { IncomingMessage } from 'node:http';
import { AccessTokenError, AccessTokens } from '../../egress/google-tokens.ts';
import { retryAfter } from '../../values/retry-after.ts';
import { LongAnswerError } from '../answers.ts';
import type { StoreWork, Surroundings } from '../destination.ts';
import { DestinationError, type DestinationErrorCode, networkError, withoutSecrets } from '../errors.ts';
import { answerText, guardedRequest, RedirectedError } from '../guarded-request.ts';
import { type RequestOptions, type Requests, requestsTo } from '../requests.ts';
import { isCut, meaningOf } from '../statuses.ts';
import { type Answer, type Api, type Call, jsonApi, NONE, xmlApi } from './api.ts';
import { accountOf, endpointOf, type GoogleConfig } from './config.ts';
import { signatureHeaders } from './signature.ts';

/** Asks the server, as part of one request of `GoogleConnection.send`. */
export interface Asker {
  /** Resolves with an answer that is no refusal; 308 is none. Otherwise throws a RefusedError. */
  ask(call: Call): Promise<Answer>;
  /** The same for the content of an object, whose body the caller reads. */
  open(call: Call): Promise<IncomingMessage>;
  /** The same for the session of an upload. Whoever knows its path needs no credentials. */
  askSession(call: Call): Promise<Answer>;
}

export interface GoogleConnection extends Omit<Requests, 'send'> {
  config: GoogleConfig;
  api: Api;
  /** Makes a request, as `Requests` does. `doing` names the right that it needs. */
  send<T>(
    request: (asker: Asker, extend: (limit: number) => void) => Promise<T>,
    options: RequestOptions,
  ): Promise<T>;
  destroy(): void;
}

/** The server refused a request. */
export class RefusedError extends Error {
  override name = 'RefusedError';
  readonly status: number;
  /** What the server calls it. */
  readonly code: string;
  readonly retryAfterMilliseconds: number | undefined;
  constructor(status: number, { code, message }: { code: string; message: string }, after?: string) {
    super(message);
    this.status = status;
    this.code = code;
    this.retryAfterMilliseconds = retryAfter(after, Date.now());
  }
}

interface Credentials {
  headers(call: Call): Promise<Record<string, string>>;
  /** What no message may contain. */
  secrets(): string[];
}

function credentialsOf(config: GoogleConfig, { egress, now }: Surroundings): Credentials {
  const { service_account_key: stored, hmac_access_key: accessKey, hmac_secret: secret } = config;
  if (stored) {
    const account = accountOf(stored);
    const tokens = new AccessTokens(egress);
    let latest = '';
    // A server may repeat the key in lines of its own.
    const lines = account.privateKey.split('\n').filter((line) => line !== '' && !line.startsWith('-'));
    return {
      async headers() {
        latest = await tokens.tokenFor(account);
        return { authorization: `Bearer ${latest}` };
      },
      secrets: () => [stored, account.privateKey, latest, ...lines],
    };
  }
  if (accessKey && secret) {
    const { host } = new URL(endpointOf(config));
    return {
      headers: async (call) => signatureHeaders(call, host, { accessKey, secret }, now?.() ?? new Date()),
      secrets: () => [accessKey, secret],
    };
  }
  throw new DestinationError(
    'not-configured',
    `${place(config)}: set service_account_key, or hmac_access_key with hmac_secret. The credentials of the machine that Sluice runs on are not used for exports.`,
  );
}

export function connectGoogle(
  config: GoogleConfig,
  surroundings: Surroundings,
  work: StoreWork = {},
): GoogleConnection {
  const credentials = credentialsOf(config, surroundings);
  const api = (config.service_account_key ? jsonApi : xmlApi)(config.bucket_name);
  const endpoint = endpointOf(config);
  const agents = surroundings.egress.agents(32);
  const requests = requestsTo(new URL(endpoint).host, surroundings, work, (error, { key, doing }) =>
    googleError(error, place(config, key), doing, credentials.secrets()),
  );

  return {
    ...requests,
    config,
    api,
    send: (request, options) =>
      requests.send((signal, extend) => {
        const idle = options.mayBeSilent ? 0 : requests.limits.idle;
        const send = async (call: Call, authorization: Record<string, string>) => {
          const { method, body } = call;
          const headers = {
            'user-agent': 'sluice',
            ...(body ? { 'content-length': body.length } : {}),
            ...call.headers,
            ...authorization,
          };
          const url = new URL(endpoint + call.path);
          const answer = await guardedRequest(agents, url, { method, headers, body, signal, idle });
          const status = answer.statusCode ?? 0;
          if (status < 300 || status === 308) return answer;
          const text = await answerText(answer);
          throw new RefusedError(status, api.refusal(text), answer.headers['retry-after']);
        };
        const read = async (answer: IncomingMessage): Promise<Answer> => ({
          status: answer.statusCode ?? 0,
          headers: answer.headers,
          text: await answerText(answer),
        });
        return request(
          {
            ask: async (call) => read(await send(call, await credentials.headers(call))),
            open: async (call) => send(call, await credentials.headers(call)),
            askSession: async (call) => read(await send(call, {})),
          },
          extend,
        );
      }, options),
    destroy: () => agents.destroy(),
  };
}

/** Codes of both APIs that the operator has to act on. */
const OPERATOR: Record<string, [DestinationErrorCode, string]> = {
  NoSuchBucket: ['missing', 'there is no such bucket'],
  authError: ['denied', 'Google refuses the token'],
  AuthenticationRequired: ['denied', 'Google refuses the key'],
  InvalidSecurity: ['denied', 'hmac_access_key is not known there'],
  SignatureDoesNotMatch: ['denied', 'hmac_secret does not belong to hmac_access_key'],
  RequestTimeTooSkewed: ['denied', 'the clock of this machine differs too much from that of the server'],
  accountDisabled: ['denied', 'the account is disabled'],
  UserProjectMissing: ['rejected', 'the bucket lets whoever asks pay, which Sluice does not do'],
  userProjectMissing: ['rejected', 'the bucket lets whoever asks pay, which Sluice does not do'],
  retentionPolicyNotMet: ['rejected', 'a policy keeps the object from being changed'],
  RetentionPolicyNotMet: ['rejected', 'a policy keeps the object from being changed'],
  objectUnderActiveHold: ['rejected', 'a hold keeps the object from being changed'],
  ObjectUnderActiveHold: ['rejected', 'a hold keeps the object from being changed'],
  EntityTooLarge: ['rejected', 'the server refuses files of this size; set max_file_size_mb'],
  uploadTooLarge: ['rejected', 'the server refuses files of this size; set max_file_size_mb'],
};

const SOON: Record<string, DestinationErrorCode> = {
  rateLimitExceeded: 'throttled',
  userRateLimitExceeded: 'throttled',
  SlowDown: 'throttled',
  // The bytes were damaged on their way.
  BadDigest: 'interrupted',
  IncompleteBody: 'interrupted',
  uploadBrokenConnection: 'interrupted',
};

export const statusOf = (error: unknown): number | undefined =>
  error instanceof RefusedError ? error.status : undefined;

/** Both APIs answer 404 where there is no bucket. The JSON API tells it only in its text. */
const isBucketMissing = (error: RefusedError): boolean =>
  error.code === 'NoSuchBucket' || /^the specified bucket does not exist/i.test(error.message);

/** Whether there is no such object, as far as the server says. */
export const isAbsent = (error: unknown): boolean =>
  error instanceof RefusedError && error.status === 404 && !isBucketMissing(error);

/** Whether a conditional request failed because the object has changed. */
export const isOutdated = (error: unknown, seen: string): boolean =>
  statusOf(error) === 412 || (isAbsent(error) && seen !== NONE);

export function place(config: Pick<GoogleConfig, 'bucket_name'>, key?: string): string {
  const bucket = `Google bucket ${JSON.stringify(config.bucket_name)}`;
  return `${bucket}${key === undefined ? '' : `, ${JSON.stringify(key)}`}`;
}

/** Turns what went wrong into a DestinationError. `doing` names the right that the request needs. */
function googleError(
  error: unknown,
  where: string,
  doing: string,
  secrets: readonly string[],
): DestinationError {
  if (error instanceof DestinationError) return error;
  const { name, message } = error as Error;
  const clean = (text: string) => withoutSecrets(text, secrets).slice(0, 500);
  const make = (kind: DestinationErrorCode, text: string, retryAfterMilliseconds?: number) =>
    new DestinationError(kind, `${where}: ${text} (${doing})`, { cause: error, retryAfterMilliseconds });
  if (error instanceof AccessTokenError) {
    const below = error.cause === undefined ? undefined : networkError(error.cause, where);
    if (below) return below;
    const { status } = error;
    const passes = status !== undefined && (status === 429 || status >= 500);
    return make(passes || error.cause !== undefined ? 'unavailable' : 'denied', clean(message));
  }
  if (error instanceof LongAnswerError) return make('unavailable', message);
  if (error instanceof RedirectedError) return make('mismatch', `${message}; check endpoint_url`);
  if (error instanceof RefusedError) {
    const { code, status, retryAfterMilliseconds: wait } = error;
    // The server chooses the code.
    const soon = Object.hasOwn(SOON, code) ? SOON[code] : undefined;
    if (soon) return make(soon, `the server says ${code}`, wait);
    const known = Object.hasOwn(OPERATOR, code) ? OPERATOR[code] : undefined;
    if (known) return make(known[0], known[1]);
    if (isBucketMissing(error)) return make('missing', 'there is no such bucket');
    // The MD5 that came along is not that of the bytes.
    if (status === 400 && /md5 hash|calculated md5/i.test(message))
      return make('interrupted', 'the bytes were damaged on their way');
    const meaning = meaningOf(status);
    if (meaning) return make(...meaning, wait);
    return make('rejected', clean(`the server refused the request, ${status} ${code}: ${message}`));
  }
  if (isCut(message)) return make('interrupted', 'the connection was cut, or the answer was damaged');
  return networkError(error, where) ?? make('unexpected', clean(`${name}: ${message}`));
}
