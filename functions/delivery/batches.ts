import type { Transaction } from '../../db/pool.ts';
import { claimBatches, formBatches, nextBatchIn } from '../rows/delivery-batches.ts';
import { type FoundEvent, LARGEST_SEEN } from '../rows/events.ts';
import type { QueueRow } from '../rows/queue.ts';
import type { BatchPolicy } from '../rules/policy.ts';
import type { StoredEvent } from '../rules/stored-event.ts';

/** How many invocations a claim takes at most, all batches together. */
const MOST_AT_ONCE = 5_000;
/** About how much of events and persons a program gets at once, in characters. */
const MOST_CHARACTERS = LARGEST_SEEN;

export interface ClaimedBatches {
  /** One of each batch, which stands for the others. */
  rows: QueueRow[];
  /** In how many milliseconds another batch is ready. Null: nothing waits for others. */
  next: number | null;
}

/** Forms and claims batches of a function that is locked. */
export async function takeBatches(
  client: Transaction,
  key: { projectId: number; functionId: string },
  { max_batch: most, max_wait_seconds: wait }: BatchPolicy,
  claim: { lease: string; seconds: number; count: number },
): Promise<ClaimedBatches> {
  const count = Math.min(claim.count, Math.max(1, Math.floor(MOST_AT_ONCE / most)));
  await formBatches(client, key, { most, wait, count });
  const claimed = await claimBatches(client, key, { ...claim, count });
  const batches = Map.groupBy(claimed, (row) => row.batch as string);
  const rows = [...batches.values()].map(representative);
  return { rows, next: rows.length === count ? 0 : await nextBatchIn(client, key, wait) };
}

/** The invocation that knows how far its batch is, or else the first one. */
function representative(rows: readonly QueueRow[]): QueueRow {
  const one = rows.find((row) => row.progress !== null) ?? (rows[0] as QueueRow);
  return { ...one, others: rows.filter((row) => row !== one) };
}

/** All invocations of a batch in their order, or the one that goes alone. */
export const allOf = (row: QueueRow): QueueRow[] =>
  [row, ...(row.others ?? [])].sort((a, b) => a.seq - b.seq);

/** The characters of an event and its person. */
export const sizeOf = (event: StoredEvent | undefined): number =>
  event ? event.properties.length + event.person_properties.length : 0;

/**
 * The invocations of a batch whose events are too much for one program, in their order. The first one always stays. Undefined:
 * it is not known yet, because its events are still to be read.
 */
export function beyondRoom(
  row: QueueRow,
  eventOf: (row: QueueRow) => FoundEvent | undefined,
): QueueRow[] | undefined {
  let characters = 0;
  const beyond: QueueRow[] = [];
  for (const [index, one] of allOf(row).entries()) {
    const event = eventOf(one);
    if (event?.unread === 'later' && (index === 0 || characters <= MOST_CHARACTERS)) return undefined;
    characters += sizeOf(event);
    if (index > 0 && one !== row && characters > MOST_CHARACTERS) beyond.push(one);
  }
  return beyond;
}
