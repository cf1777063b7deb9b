import { CopyRows } from '../../formats/copy-rows.ts';
import type { Delivered, Delivery, Rejection, Surroundings } from '../destination.ts';
import { DestinationError } from '../errors.ts';
import { Batch, eventColumns, type FullBatch, MOST_BODY_BYTES, wireEvent } from './batch.ts';
import type { HttpConfig } from './config.ts';
import { place, post } from './send.ts';

/** Receivers refuse historical events younger than 48 hours. Their clocks may be behind ours. */
const HISTORICAL_MILLISECONDS = 49 * 3_600_000;
const MOST_REJECTIONS = 20;
/** After so many refused events and none taken, the run ends: the receiver does not take events. */
const HOPELESS = 20;
/** How many requests run at the same time. Each keeps its body in memory. */
const CONCURRENCY = 3;

/**
 * Posts events in batches. After a failed attempt, the next one sends all events again. The receiver stores each uuid
 * once.
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

  let refusal: DestinationError | undefined;

  function reject(key: string, reason: string): void {
    rejected += 1;
    if (rejections.length < MOST_REJECTIONS) rejections.push({ key, reason });
  }

  async function send(batch: Batch): Promise<void> {
    if (batch.count === 0) return;
    while (sending.size >= CONCURRENCY) await Promise.race(sending);
    delivery.signal?.throwIfAborted();
    if (failure) throw failure;
    const request = postNarrowing(batch.take(), {
      async post(body) {
        await delivery.fence?.();
        await post(config, surroundings, body, {
          signal,
          onWait: delivery.onWait,
          hasFlowed: () => written > 0,
        });
      },
      onTaken(events, size) {
        bytes += size;
        written += events;
        delivery.onProgress?.(written, bytes);
      },
      onRefused(uuid, error) {
        refusal = error;
        reject(uuid, error.message);
        if (written === 0 && rejected >= HOPELESS) throw error;
      },
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
          const size = event.bytes.length;
          reject(event.uuid, `the event has ${size} bytes; a request may have ${MOST_BODY_BYTES}`);
          continue;
        }
        if (!batch.hasRoomFor(event.bytes)) await send(batch);
        batch.add(event);
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
  if (refusal && written === 0) throw refusal;
  return { rows, bytes, written, rejected, rejections };
}

interface Narrowing {
  post(body: Buffer): Promise<void>;
  onTaken(events: number, bytes: number): void;
  /** Called with an event that the receiver refuses even alone. Throws if there is no point in sending others. */
  onRefused(uuid: string, error: DestinationError): void;
}

/**
 * Sends a batch. If the receiver refuses its content, sends it in halves, and these again in halves. So bad events do
 * not hold up the others, and a receiver that takes smaller requests gets them.
 */
async function postNarrowing(
  batch: FullBatch,
  work: Narrowing,
  from = 0,
  to = batch.uuids.length,
): Promise<void> {
  const body = batch.body(from, to);
  try {
    await work.post(body);
    work.onTaken(to - from, body.length);
  } catch (error) {
    if (!(error instanceof DestinationError) || error.code !== 'rejected') throw error;
    if (to - from === 1) {
      work.onRefused(batch.uuids[from] as string, error);
      return;
    }
    const middle = Math.ceil((from + to) / 2);
    await postNarrowing(batch, work, from, middle);
    await postNarrowing(batch, work, middle, to);
  }
}
