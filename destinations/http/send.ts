import type { FetchAnswer } from '../../egress/fetch.ts';
import { retryAfter } from '../../values/retry-after.ts';
import type { Surroundings } from '../destination.ts';
import { DestinationError, networkError, withoutSecrets } from '../errors.ts';
import { limitsOf, requestLimit } from '../limits.ts';
import { type Persistence, patiently } from '../retry.ts';
import type { HttpConfig } from './config.ts';

const MOST_ANSWER_BYTES = 64 * 1024;

export function place(config: HttpConfig): string {
  const url = new URL(config.url);
  return `HTTP ${url.origin}${url.pathname}`;
}

/** The error that an answer means. Undefined if the receiver took the batch. */
function answerError(answer: FetchAnswer, config: HttpConfig, now: Date): DestinationError | undefined {
  const { status } = answer;
  if (status >= 200 && status < 300) return undefined;
  const where = place(config);
  // Before the blanks are joined, since a token may contain some.
  const said = withoutSecrets(answer.body.toString('utf8'), [config.token])
    .replaceAll(/\s+/g, ' ')
    .slice(0, 200);
  const text = `${where}: the receiver answered ${status}${said ? ` (${said})` : ''}`;
  const options = { retryAfterMilliseconds: retryAfter(answer.headers['retry-after'], now.getTime()) };
  if (status === 429) return new DestinationError('throttled', text, options);
  if (status >= 500) return new DestinationError('unavailable', text, options);
  if (status === 401 || status === 403)
    return new DestinationError('denied', `${text}: set token to a project key that it knows`);
  if (status === 404 || status === 405)
    return new DestinationError('missing', `${text}: set url to where it takes batches`);
  if (status >= 300 && status < 400) {
    const target = URL.parse(answer.headers.location ?? '', config.url);
    return new DestinationError(
      'mismatch',
      `${text}: it redirects to ${withoutSecrets(target?.origin ?? 'elsewhere', [config.token, config.token.toLowerCase()])}; set url to that`,
    );
  }
  return new DestinationError('rejected', text);
}

/** Posts a body. Once events have arrived in this attempt, repeats the request while that may help. */
export async function post(
  config: HttpConfig,
  surroundings: Surroundings,
  body: Buffer,
  { signal, onWait, hasFlowed = () => false }: Partial<Pick<Persistence, 'signal' | 'onWait' | 'hasFlowed'>>,
): Promise<void> {
  const now = surroundings.now ?? (() => new Date());
  await patiently(
    async () => {
      const over = onWait?.(place(config));
      const answer = await surroundings.egress
        .fetch(config.url, {
          method: 'POST',
          headers: { 'content-type': 'application/json' },
          body,
          timeoutMilliseconds: requestLimit(limitsOf(surroundings), body.length),
          maxAnswerBytes: MOST_ANSWER_BYTES,
          ...(signal ? { signal } : {}),
        })
        .catch((error) => {
          signal?.throwIfAborted();
          throw (
            networkError(error, place(config)) ??
            new DestinationError('interrupted', `${place(config)}: the answer could not be read`, {
              cause: error,
            })
          );
        })
        .finally(over);
      const error = answerError(answer, config, now());
      if (error) throw error;
    },
    { signal, patience: surroundings.patience, onWait, hasFlowed, mayBeStale: true },
  );
}
