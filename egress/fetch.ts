import type { Socket } from 'node:net';
import { Agent, buildConnector, type Dispatcher } from 'undici';
import { EgressRefusedError } from './egress-refused.ts';
import type { Guard } from './guard.ts';
import { limitConnecting, NoAnswerError, secondsText } from './no-answer.ts';

export interface FetchOptions {
  method?: string;
  headers?: Record<string, string>;
  body?: string | Buffer;
  signal?: AbortSignal;
  /** The time for the whole request, from the DNS lookup to the last byte of the answer. */
  timeoutMilliseconds?: number;
  /** The largest answer. The rest of a longer one is not read. */
  maxAnswerBytes?: number;
  /** Asked once about an answer of more than LITTLE bytes. Reading stands still until it resolves. */
  admit?: () => Promise<void> | undefined;
  /**
   * How many redirects to follow. Each target is checked like the first address. By default a redirect is returned as
   * the answer. A redirect that would take the body to another origin is never followed.
   */
  redirects?: number;
}

export interface FetchAnswer {
  /** The URL of the answer, after redirects. */
  url: string;
  status: number;
  headers: Record<string, string>;
  body: Buffer;
  /** True if the answer was longer than `maxAnswerBytes`. */
  truncated: boolean;
}

const TIMEOUT_MILLISECONDS = 30_000;
const MAX_ANSWER_BYTES = 1024 * 1024;
/** How much of an answer is read without asking. */
export const LITTLE = 64 * 1024;
const REDIRECTS = new Set([301, 302, 303, 307, 308]);
/** The only headers that another origin gets after a redirect. Any other header may hold a credential. */
const HARMLESS = new Set(['accept', 'accept-language', 'user-agent']);

/** How long fetch waits for a server, in milliseconds. */
export interface FetchLimits {
  /** Until a connection is ready. */
  connect: number;
  /** While no byte moves in either direction. */
  idle: number;
}

export function guardedDispatcher(guard: Guard, limits: FetchLimits): Agent {
  // 0: the limit below takes the place of undici's, which would name no port.
  const connector = buildConnector({ timeout: 0, lookup: guard.lookup });
  const connect = ((options, callback) => {
    const where = options.host ?? options.hostname;
    const socket = connector(options, callback) as unknown as Socket;
    const ready = options.protocol === 'https:' ? 'secureConnect' : 'connect';
    limitConnecting(socket, ready, where, limits.connect);
    socket.once(ready, () => {
      socket.setTimeout(limits.idle, () =>
        socket.destroy(new NoAnswerError(`${where} was silent for ${secondsText(limits.idle)}`)),
      );
    });
  }) as typeof connector;
  return new Agent({
    connect(options, callback) {
      try {
        guard.checkLiteral(options.hostname);
      } catch (error) {
        callback(error as Error, null);
        return;
      }
      connect(options, callback);
    },
  });
}

/** Parses and checks a URL. The error does not show an invalid URL, because it can contain a password. */
function target(url: string | URL, base?: URL): URL {
  const parsed = URL.parse(String(url), base?.href) ?? undefined;
  if (!parsed) throw new EgressRefusedError('the address', undefined, 'it is not a valid URL');
  if (parsed.protocol !== 'http:' && parsed.protocol !== 'https:') {
    throw new EgressRefusedError(
      parsed.host || 'the address',
      undefined,
      `${parsed.protocol} is neither http: nor https:`,
    );
  }
  if (parsed.username !== '' || parsed.password !== '') {
    throw new EgressRefusedError(parsed.host, undefined, 'the URL contains a user name or password');
  }
  return parsed;
}

type Answered = Omit<FetchAnswer, 'url'>;

function plainHeaders(headers: Record<string, string | string[] | undefined>): Record<string, string> {
  const plain: Record<string, string> = {};
  for (const name of Object.keys(headers)) {
    const value = headers[name];
    plain[name] = Array.isArray(value) ? value.join(', ') : (value ?? '');
  }
  return plain;
}

/** Sends one request and reads its answer. It is what undici's `request` does, without a stream for each answer. */
function send(
  dispatcher: Dispatcher,
  options: Dispatcher.DispatchOptions,
  { maxAnswerBytes: most = MAX_ANSWER_BYTES, admit }: FetchOptions,
): Sending {
  const sending = {} as Sending;
  let gone: Error | undefined;
  let control: Dispatcher.DispatchController | undefined;
  sending.abort = (reason) => {
    gone ??= reason;
    control?.abort(reason);
  };
  sending.answer = new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let [status, bytes] = [0, 0];
    let isAdmitted = admit === undefined;
    let headers: Record<string, string> = {};
    const done = (truncated: boolean) =>
      resolve({ status, headers, body: chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks), truncated });
    dispatcher.dispatch(options, {
      onRequestStart(controller) {
        control = controller;
        if (gone) controller.abort(gone);
      },
      onResponseStart(_controller, code, given) {
        // What comes before the answer, such as 103, does not count.
        if (code < 200) return;
        status = code;
        headers = plainHeaders(given);
      },
      onResponseData(controller, chunk) {
        const room = most - bytes;
        bytes += chunk.length;
        if (room > 0) chunks.push(chunk.length > room ? chunk.subarray(0, room) : chunk);
        if (!isAdmitted && bytes > LITTLE) {
          isAdmitted = true;
          const admission = admit?.();
          if (admission) {
            controller.pause();
            void admission.then(() => controller.resume());
          }
        }
        if (bytes <= most) return;
        done(true);
        // This closes the connection, so an endless answer costs no more.
        controller.abort(new Error('the answer is too long'));
      },
      onResponseEnd: () => done(false),
      onResponseError: (_controller, error) => reject(error),
    });
  });
  return sending;
}

interface Sending {
  answer: Promise<Answered>;
  /** Nobody waits any more. */
  abort(reason: Error): void;
}

/** Sends a request through the guard. Returns the answer, whatever its status. Throws if there is no answer. */
export async function guardedFetch(
  dispatcher: Dispatcher,
  url: string | URL,
  options: FetchOptions = {},
): Promise<FetchAnswer> {
  let at = target(url);
  const milliseconds = options.timeoutMilliseconds ?? TIMEOUT_MILLISECONDS;
  const { signal } = options;
  signal?.throwIfAborted();
  let sending: Sending | undefined;
  let isLate = false;
  const timer = setTimeout(() => {
    isLate = true;
    sending?.abort(new Error('there was no answer in time'));
  }, milliseconds);
  const stop = () => sending?.abort(new Error('nobody waits for the answer'));
  signal?.addEventListener('abort', stop);
  let { method = 'GET', body } = options;
  let headers = options.headers ?? {};
  try {
    for (let left = options.redirects ?? 0; ; left -= 1) {
      const request: Dispatcher.DispatchOptions = {
        ...{ origin: at.origin, path: at.pathname + at.search, method: method as Dispatcher.HttpMethod },
        // The time above counts for the whole answer, and names its host.
        ...{ headers, body: body ?? null, headersTimeout: 0, bodyTimeout: 0 },
      };
      sending = send(dispatcher, request, options);
      const answer = await sending.answer;
      const { status } = answer;
      const location = answer.headers.location;
      if (left > 0 && REDIRECTS.has(status) && typeof location === 'string') {
        const next = target(location, at);
        const isElsewhere = next.origin !== at.origin;
        const dropsBody = status === 303 || (status < 303 && method === 'POST');
        if (!isElsewhere || dropsBody || body === undefined) {
          if (dropsBody) {
            method = 'GET';
            body = undefined;
            headers = only(headers, (name) => !name.startsWith('content-'));
          }
          if (isElsewhere) headers = only(headers, (name) => HARMLESS.has(name));
          at = next;
          continue;
        }
      }
      return { url: at.href, ...answer };
    }
  } catch (error) {
    if (signal?.aborted) throw signal.reason;
    if (isLate) throw new NoAnswerError(`no answer from ${at.host} within ${secondsText(milliseconds)}`);
    throw error;
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener('abort', stop);
  }
}

const only = (headers: Record<string, string>, keeps: (name: string) => boolean): Record<string, string> =>
  Object.fromEntries(Object.entries(headers).filter(([name]) => keeps(name.toLowerCase())));
