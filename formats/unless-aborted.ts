/** Waits for work, but no longer than until `signal` aborts. What it does afterwards is lost. */
export async function unlessAborted<T>(work: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (!signal) return work;
  const over = new AbortController();
  // Nobody may wait for the work any more when it fails.
  work.catch(() => undefined);
  try {
    return await Promise.race([work, aborted(signal, over.signal)]);
  } finally {
    over.abort();
  }
}

/** Rejects when `signal` aborts, but no longer after `over` has aborted. */
function aborted(signal: AbortSignal, over: AbortSignal): Promise<never> {
  return new Promise((_resolve, reject) => {
    if (signal.aborted) reject(signal.reason);
    signal.addEventListener('abort', () => reject(signal.reason), { once: true, signal: over });
  });
}
