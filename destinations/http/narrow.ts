import { DestinationError } from '../errors.ts';
import type { FullBatch } from './batch.ts';

export interface Narrowing {
  post(body: Buffer): Promise<void>;
  onTaken(events: number, bytes: number): void;
  /** An event that the receiver does not take even alone; throws if there is no point in looking for others. */
  onRefused(uuid: string, error: DestinationError): void;
}

/**
 * Sends a batch. One that its receiver refuses for what is in it is sent in halves, and these again, so that the events
 * that are to blame keep none of the others from their place, and a receiver that takes less at once gets less.
 */
export async function postNarrowing(
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
