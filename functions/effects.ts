// What programs ask of the world: requests.

import { nextTurn } from '../db/loop-turns.ts';
import type { Egress } from '../egress/egress.ts';
import { LITTLE } from '../egress/fetch.ts';
import { exceeds, type JsonLimits } from '../values/nesting.ts';
import { retryAfter } from '../values/retry-after.ts';
import type { InvocationLog } from './rules/logs.ts';
import { answerTo, type MockedAnswer } from './rules/mocks.ts';
import type { Redact } from './rules/redact.ts';
import type { OutgoingRequest } from './rules/request.ts';
import type { ExpectsStatus } from './rules/statuses.ts';
import { type AwsKeys, type Signing, signatureFor, signingOf } from './signing.ts';

/** What of an integration only the runtime knows. */
export type Substitution = object;

/** An integration cannot be used. The message is for people, and contains no secret. */
export class IntegrationError extends Error {
  override readonly name = 'IntegrationError';
  /** Whether it may be usable later. */
  readonly isTemporary: boolean;

  constructor(message: string, { isTemporary = false }: { isTemporary?: boolean } = {}) {
    super(message);
    this.isTemporary = isTemporary;
  }
}

/** Credentials that programs use without seeing them. */
export interface Integrations {
  /**
   * Undefined: the project has no such integration. `seed` is a random secret of the run. If nothing is sent, no tokens are
   * asked for either. Throws an IntegrationError.
   */
  resolve(
    projectId: number,
    id: number,
    { seed, isMocked }: { seed: string; isMocked: boolean },
  ): Promise<{ inputs: Record<string, unknown>; substitution: Substitution } | undefined>;
  /** Puts secrets in the place of what stands for them. Throws if one may not go to the host of the request. */
  substitute(request: OutgoingRequest, substitutions: readonly Substitution[]): OutgoingRequest;
  secretValues(substitutions: readonly Substitution[]): string[];
  /** Returns the keys of an integration for AWS. Throws if it has none, or if they may not be used for the host of the URL. */
  awsKeys(substitutions: readonly Substitution[], integrationId: number, url: string): AwsKeys;
}

/** A request as people see it: without secrets. */
export interface ShownFetch {
  url: string;
  method: string;
  headers: Record<string, string>;
  body: string | null;
  /** How the request is signed when it is sent. The headers of the signature are not shown. */
  signed: Signing['scheme'] | null;
  mocked: boolean;
  duration_ms: number;
  /** Null: there was no answer. */
  response: { status: number; body: unknown } | null;
  error: string | null;
}

/** What a program gets for a request. */
export interface FetchResult {
  status: number;
  body: unknown;
}

const WITHOUT_BODY = new Set(['GET', 'HEAD']);
const TIMEOUT = 10_000;
const LONGEST_ANSWER = 1024 * 1024;
const LONGEST_BODY = 5 * 1024 * 1024;
const METHOD = /^[A-Z]{1,20}$/;

export interface FetchContext {
  egress: Pick<Egress, 'fetch'>;
  integrations: Integrations;
  substitutions: readonly Substitution[];
  redact: Redact;
  log: InvocationLog;
  isMocked: boolean;
  /** What requests get that are not sent. */
  answers: readonly MockedAnswer[];
  signal?: AbortSignal | undefined;
  /** Which statuses are no failures. */
  expects: ExpectsStatus;
  /** The value of an input, as the program sees it. */
  input(key: string): unknown;
  /** The id of the integration that an input names. */
  integrationId(key: string): number | undefined;
  /** Headers that are sent if the program does not name them. */
  headers?: Readonly<Record<string, string>>;
  /** Headers that are sent whatever the program names. */
  ownHeaders: Readonly<Record<string, string>>;
  /** Which attempt of the request this is. By default the first. */
  attempt?: number;
  /** Answers in how many milliseconds a failed attempt is repeated. Null: it is not. By default none is. */
  repeats?(failure: FetchFailure): number | null;
  /** Resolves when the host may be asked. Throws if it should not be asked now. */
  enter?(host: string): Promise<void>;
  /** Asked about a large answer. It is read when this resolves. */
  admit?(): Promise<void> | undefined;
}

/** An attempt that failed: the status, or null if there was no answer. */
export interface FetchFailure {
  status: number | null;
  error: Error | null;
  /** When the server wants the next attempt, in milliseconds from now. */
  retryAfter: number | null;
}

export interface Fetched {
  result: FetchResult;
  shown: ShownFetch;
  /** Whether the answer, or that there was none, counts as a failure. */
  failed: boolean;
  /** Null: the request is not repeated. */
  repeat: FetchFailure | null;
  /** The size of the answer in bytes. */
  size: number;
}

/** The request should be made later. Nothing was sent. */
export class NotNowError extends Error {
  override readonly name = 'NotNowError';
  readonly milliseconds: number;

  constructor(host: string, milliseconds: number) {
    super(`${host} does not answer at the moment`);
    this.milliseconds = milliseconds;
  }
}

interface Asked {
  method: string;
  request: OutgoingRequest;
  signing: Signing | null;
}

/** Reads the arguments of `fetch(url, options)`. */
function askedOf([url, options]: readonly unknown[]): Asked {
  const given = (typeof options === 'object' && options !== null ? options : {}) as Record<string, unknown>;
  const method = typeof given.method === 'string' ? given.method.toUpperCase() : 'POST';
  if (!METHOD.test(method)) throw new TypeError(`the method ${JSON.stringify(given.method)} is not valid`);
  const headers =
    typeof given.headers === 'object' && given.headers !== null
      ? Object.fromEntries(
          Object.entries(given.headers).filter((one): one is [string, string] => typeof one[1] === 'string'),
        )
      : { 'Content-Type': 'application/json' };
  const { body } = given;
  const isEmpty = body === undefined || body === null || WITHOUT_BODY.has(method);
  const text = isEmpty ? null : typeof body === 'string' ? body : JSON.stringify(body);
  if (text !== null && Buffer.byteLength(text) > LONGEST_BODY) {
    throw new RangeError(`the body is larger than ${LONGEST_BODY / 1024 / 1024} MB`);
  }
  return { method, request: { url: String(url), headers, body: text }, signing: signingOf(given) };
}

/** How deep an answer may nest, like an event, and how much it may hold to be more than a text. */
const ANSWER: JsonLimits = { depth: 200, values: 100_000 };

/** Reads the body of an answer: as JSON if it is some, or else as text. */
function answerOf(text: string): unknown {
  if (exceeds(text, ANSWER)) return text;
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/** Adds headers that a request does not have. */
function completed(headers: Record<string, string>, more: Readonly<Record<string, string>> = {}) {
  const given = new Set(Object.keys(headers).map((name) => name.toLowerCase()));
  const missing = Object.entries(more).filter(([name]) => !given.has(name.toLowerCase()));
  return missing.length === 0 ? headers : { ...headers, ...Object.fromEntries(missing) };
}

/** Takes headers out that a program must not decide about, and puts ours in their place. */
function withOwn(headers: Record<string, string>, own: Readonly<Record<string, string>>) {
  const names = new Set(Object.keys(own).map((name) => name.toLowerCase()));
  const others = Object.entries(headers).filter(([name]) => !names.has(name.toLowerCase()));
  return { ...Object.fromEntries(others), ...own };
}

/** Makes one request for a program, or only shows it. Never throws because of the request, but if it is not the time for it. */
export async function fetchFor(args: readonly unknown[], context: FetchContext): Promise<Fetched> {
  const { redact, log, isMocked, attempt = 1 } = context;
  const began = performance.now();
  let asked: Asked = {
    ...{ method: 'POST', signing: null },
    request: { url: String(args[0]), headers: {}, body: null },
  };
  let size = 0;
  /** `json`: the body as it came. Mostly there is nothing to hide in it, which is found out faster than value by value. */
  const hidden = ({ status, body }: FetchResult, json?: string): FetchResult =>
    json !== undefined && redact.hasNothing(json) ? { status, body } : { status, body: redact.value(body) };
  const done = (
    answer: FetchResult | null,
    error: Error | null,
    { retryAfter = null, json }: { retryAfter?: number | null; json?: string } = {},
  ): Fetched => {
    const told = answer && hidden(answer, json);
    const { url, headers, body } = asked.request;
    const shown = {
      ...{
        url: redact.text(url),
        method: asked.method,
        headers: redact.value(headers) as Record<string, string>,
      },
      body: body === null ? null : redact.text(body),
      signed: asked.signing?.scheme ?? null,
      ...{ mocked: isMocked, duration_ms: Math.round(performance.now() - began) },
      response: told,
      error: error && redact.text(error.message),
    };
    const isExpected = error === null && answer !== null && context.expects(answer.status);
    const failed = (error !== null || (answer !== null && answer.status >= 400)) && !isExpected;
    const failure = { status: answer?.status ?? null, error, retryAfter };
    const isFailure = failed || (answer !== null && answer.status >= 400);
    const after = isFailure ? (context.repeats?.(failure) ?? null) : null;
    if (isFailure) {
      const status = answer ? answer.status : '(none)';
      log.add(
        failed ? 'error' : 'info',
        `HTTP fetch failed on attempt ${attempt} with status code ${status}.` +
          `${error ? ` Error: ${error.message}.` : ''}${after === null ? '' : ` Retrying in ${after}ms.`}`,
      );
    }
    const result =
      told ?? hidden({ status: 500, body: `${error?.name ?? 'Error'}: ${error?.message ?? ''}` });
    return { result, shown, failed, repeat: after === null ? null : failure, size };
  };
  try {
    asked = askedOf(args);
    const given = completed(asked.request.headers, context.headers);
    const request = { ...asked.request, headers: withOwn(given, context.ownHeaders) };
    const complete = context.integrations.substitute(request, context.substitutions);
    // Also if nothing is sent: what cannot be signed fails in a test, too.
    const headers = asked.signing
      ? await signatureFor(asked.signing, asked.method, complete, signingContext(context))
      : complete.headers;
    const { url, body } = complete;
    if (isMocked) {
      const { request, method } = asked;
      const options = { ...(args[1] as object | undefined), method, headers: request.headers };
      log.add('info', "Async function 'fetch' was mocked with arguments:");
      log.add('info', `fetch('${request.url}', ${JSON.stringify(options, null, 2)})`);
      return done(answerTo(context.answers, { method, url: request.url }), null);
    }
    await context.enter?.(URL.parse(url)?.host ?? '');
    const answer = await context.egress.fetch(url, {
      method: asked.method,
      headers,
      ...(body === null ? {} : { body }),
      ...(context.signal ? { signal: context.signal } : {}),
      timeoutMilliseconds: TIMEOUT,
      maxAnswerBytes: LONGEST_ANSWER,
      ...(context.admit ? { admit: context.admit } : {}),
    });
    size = answer.body.length;
    // Large ones are taken apart one after the other, and others have their turn between them.
    if (size > LITTLE) await nextTurn();
    const wait = retryAfter(answer.headers['retry-after'], Date.now()) ?? null;
    const json = answer.body.toString('utf8');
    return done({ status: answer.status, body: answerOf(json) }, null, { retryAfter: wait, json });
  } catch (error) {
    if (context.signal?.aborted) throw context.signal.reason;
    if (error instanceof NotNowError) throw error;
    return done(null, error as Error);
  }
}

const signingContext = ({ input, integrationId, integrations, substitutions }: FetchContext) => ({
  input,
  awsKeys: (key: string, url: string): AwsKeys => {
    const id = integrationId(key);
    if (id === undefined) throw new TypeError(`the input \`${key}\` names no integration`);
    return integrations.awsKeys(substitutions, id, url);
  },
});
