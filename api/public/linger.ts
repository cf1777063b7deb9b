import type { IncomingMessage, ServerResponse } from 'node:http';

/** Milliseconds without a byte after which a client has stopped sending. */
const STOPPED_AFTER = 5_000;
/** What a refused client still sends is thrown away up to here. */
const MOST_DISCARDED = 64 * 1024 * 1024;

/**
 * Ends an answer to a request that is still being sent, when the client has stopped sending. Closed before, the
 * connection would break under it, and many clients would never see the answer: they would send the same again, and
 * not learn that they are to send less.
 */
export function endAfterRequest(request: IncomingMessage, response: ServerResponse, body: string): void {
  response.write(body);
  let discarded = 0;
  const stopped = setTimeout(end, STOPPED_AFTER).unref();
  function end(): void {
    clearTimeout(stopped);
    response.end();
  }
  request.on('data', (chunk: Buffer) => {
    stopped.refresh();
    discarded += chunk.length;
    if (discarded > MOST_DISCARDED) end();
  });
  request.on('error', end);
  request.once('end', end);
  request.once('close', end);
  request.resume();
}
