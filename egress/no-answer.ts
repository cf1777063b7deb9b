import type { EventEmitter } from 'node:events';

/** Nothing came from a server for as long as Sluice waits. A later try may succeed. */
export class NoAnswerError extends Error {
  override name = 'NoAnswerError';
  readonly code = 'ETIMEDOUT';
}

export const secondsText = (milliseconds: number): string => {
  const seconds = Math.round(milliseconds / 100) / 10;
  return seconds === 1 ? '1 second' : `${seconds} seconds`;
};

/** How long a connection may take from the lookup of the name to the end of the TLS handshake, in milliseconds. */
export const CONNECT_MILLISECONDS = 10_000;

interface Connecting extends EventEmitter {
  destroy(error?: Error): unknown;
}

/**
 * Ends a connection that is not ready in time, however slowly the server talks. `ready` is the event that ends the
 * wait: `connect`, or `secureConnect` if TLS belongs to the connection.
 */
export function limitConnecting(
  socket: Connecting,
  ready: 'connect' | 'secureConnect',
  where: string,
  milliseconds: number,
): void {
  const timer = setTimeout(() => {
    socket.destroy(
      new NoAnswerError(`cannot connect to ${where}: no answer within ${secondsText(milliseconds)}`),
    );
  }, milliseconds);
  const done = () => clearTimeout(timer);
  socket.once(ready, done);
  socket.once('close', done);
}

/**
 * Does the work, and throws a NoAnswerError if it takes longer. It settles in time also if the work ignores its signal,
 * which is aborted then, or when the caller's is. The work may get more time by `extend`, counted from the beginning.
 */
export async function within<T>(
  milliseconds: number,
  message: (limit: string) => string,
  signal: AbortSignal | undefined,
  work: (signal: AbortSignal, extend: (milliseconds: number) => void) => Promise<T>,
): Promise<T> {
  signal?.throwIfAborted();
  const began = performance.now();
  const late = new AbortController();
  const { promise: stopped, reject } = Promise.withResolvers<never>();
  const endAfter = (limit: number) =>
    setTimeout(
      () => {
        const error = new NoAnswerError(message(secondsText(limit)));
        reject(error);
        late.abort(error);
      },
      Math.max(0, limit - (performance.now() - began)),
    );
  let timer = endAfter(milliseconds);
  const extend = (limit: number) => {
    clearTimeout(timer);
    timer = endAfter(limit);
  };
  const onAbort = () => reject(signal?.reason);
  signal?.addEventListener('abort', onAbort, { once: true });
  try {
    const combined = signal ? AbortSignal.any([signal, late.signal]) : late.signal;
    return await Promise.race([work(combined, extend), stopped]);
  } catch (error) {
    // What the work makes of its aborted signal says less.
    if (late.signal.aborted && !signal?.aborted) throw late.signal.reason;
    throw error;
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener('abort', onAbort);
  }
}
