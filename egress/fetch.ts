import type { Socket } from 'node:net';
import { Agent, buildConnector, type Dispatcher, request } from 'undici';
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

async function read(
  answer: Dispatcher.ResponseData,
  most: number,
): Promise<{ body: Buffer; truncated: boolean }> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of answer.body) {
    const room = most - bytes;
    bytes += (chunk as Buffer).length;
    if (room > 0) chunks.push((chunk as Buffer).subarray(0, room));
    // Leaving the loop closes the connection, so an endless answer costs no more.
    if (bytes > most) return { body: Buffer.concat(chunks), truncated: true };
  }
  return { body: Buffer.concat(chunks), truncated: false };
}

function plainHeaders(headers: Dispatcher.ResponseData['headers']): Record<string, string> {
  return Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [
      name,
      Array.isArray(value) ? value.join(', ') : (value ?? ''),
    ]),
  );
}

/** Sends a request through the guard. Returns the answer, whatever its status. Throws if there is no answer. */
export async function guardedFetch(
  dispatcher: Dispatcher,
  url: string | URL,
  options: FetchOptions = {},
): Promise<FetchAnswer> {
  let at = target(url);
  const milliseconds = options.timeoutMilliseconds ?? TIMEOUT_MILLISECONDS;
  const timeout = new AbortController();
  const timer = setTimeout(() => timeout.abort(), milliseconds);
  const signal = options.signal ? AbortSignal.any([options.signal, timeout.signal]) : timeout.signal;
  let { method = 'GET', body } = options;
  let headers = Object.entries(options.headers ?? {});
  try {
    for (let left = options.redirects ?? 0; ; left -= 1) {
      const answer = await request(at, {
        dispatcher,
        method: method as Dispatcher.HttpMethod,
        headers: Object.fromEntries(headers),
        body: body ?? null,
        signal,
        headersTimeout: milliseconds,
        bodyTimeout: milliseconds,
      });
      const { statusCode: status } = answer;
      const location = answer.headers.location;
      if (left > 0 && REDIRECTS.has(status) && typeof location === 'string') {
        const next = target(location, at);
        const isElsewhere = next.origin !== at.origin;
        const dropsBody = status === 303 || (status < 303 && method === 'POST');
        if (!isElsewhere || dropsBody || body === undefined) {
          await answer.body.dump();
          if (dropsBody) {
            method = 'GET';
            body = undefined;
            headers = headers.filter(([name]) => !name.toLowerCase().startsWith('content-'));
          }
          if (isElsewhere) headers = headers.filter(([name]) => HARMLESS.has(name.toLowerCase()));
          at = next;
          continue;
        }
      }
      const content = await read(answer, options.maxAnswerBytes ?? MAX_ANSWER_BYTES);
      return { url: at.href, status, headers: plainHeaders(answer.headers), ...content };
    }
  } catch (error) {
    if (options.signal?.aborted) throw options.signal.reason;
    if (timeout.signal.aborted)
      throw new NoAnswerError(`no answer from ${at.host} within ${secondsText(milliseconds)}`);
    throw error;
  } finally {
    clearTimeout(timer);
  }
}
