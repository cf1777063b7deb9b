import { CopyRows } from '../../formats/copy-rows.ts';
import type { Delivered, Delivery, Rejection, Surroundings } from '../destination.ts';
import { DestinationError } from '../errors.ts';
import type { HttpConfig } from '../http.ts';
import { Batch, eventColumns, MOST_BODY_BYTES, wireEvent } from './batch.ts';
import { place, post } from './send.ts';

/** Receivers refuse younger events as historical ones. */
const HISTORICAL_MILLISECONDS = 48 * 3_600_000;
const MOST_REJECTIONS = 20;
/** Requests on their way at a time; each holds its body in memory. */
const CONCURRENCY = 3;

/**
 * Posts events in batches. An attempt that fails leaves what it has sent so far at the receiver, which takes each uuid
 * once: the next attempt sends all of it again.
 */
export async function deliverByHttp(
  config: HttpConfig,
  surroundings: Surroundings,
  delivery: Delivery,
): Promise<Delivered> {
  const columns = eventColumns(delivery.columns);
  if (!columns) {
    throw new DestinationError(
      'mismatch',
      `${place(config)}: uuid, event, distinct_id, timestamp and properties must be among the columns of the export`,
    );
  }
  const bound = (surroundings.now?.() ?? new Date()).getTime() - HISTORICAL_MILLISECONDS;
  const recent = new Batch(config.token, false);
  const historical = new Batch(config.token, true);
  const stop = new AbortController();
  const signal = delivery.signal ? AbortSignal.any([delivery.signal, stop.signal]) : stop.signal;
  const sending = new Set<Promise<void>>();
  const rejections: Rejection[] = [];
  let failure: unknown;
  let rows = 0;
  let bytes = 0;
  let written = 0;
  let rejected = 0;

  async function send(batch: Batch): Promise<void> {
    if (batch.count === 0) return;
    while (sending.size >= CONCURRENCY) await Promise.race(sending);
    delivery.signal?.throwIfAborted();
    if (failure) throw failure;
    await delivery.fence?.();
    const { count } = batch;
    const body = batch.take();
    const request = post(config, surroundings, body, signal)
      .then(() => {
        bytes += body.length;
        written += count;
        delivery.onProgress?.(written, bytes);
      })
      .catch((error) => {
        failure ??= error;
        stop.abort(error);
      })
      .finally(() => sending.delete(request));
    sending.add(request);
  }

  try {
    const reader = new CopyRows(delivery.columns.length);
    for await (const chunk of delivery.read()) {
      reader.push(chunk);
      while (reader.next()) {
        rows += 1;
        const event = wireEvent(reader, columns);
        const batch = event.time < bound ? historical : recent;
        if (!batch.couldTake(event.bytes)) {
          rejected += 1;
          if (rejections.length < MOST_REJECTIONS) {
            const reason = `the event has ${event.bytes.length} bytes; a request may have ${MOST_BODY_BYTES}`;
            rejections.push({ key: event.uuid, reason });
          }
          continue;
        }
        if (!batch.hasRoomFor(event.bytes)) await send(batch);
        batch.add(event.bytes);
      }
    }
    reader.finish();
    await send(historical);
    await send(recent);
  } catch (error) {
    stop.abort(error);
    await Promise.all(sending);
    throw failure ?? error;
  }
  await Promise.all(sending);
  delivery.signal?.throwIfAborted();
  if (failure) throw failure;
  return { rows, bytes, written, rejected, rejections };
}
