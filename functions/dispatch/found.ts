import { randomInt } from 'node:crypto';
import type { Transaction } from '../../db/pool.ts';
import { uuidv7 } from '../../db/uuid.ts';
import { cleanText } from '../../values/texts.ts';
import { Counts } from '../rows/counts.ts';
import { DISABLED, recordRefused } from '../rows/history.ts';
import { addLateKeys } from '../rows/late-batches.ts';
import { addLogs } from '../rows/logs.ts';
import { countMasked, type MaskRequest } from '../rows/masks.ts';
import { keepPositions } from '../rows/positions.ts';
import { type NewClaim, type NewInvocation, type QueueRow, queueDispatched } from '../rows/queue.ts';
import type { DisabledFunction } from '../rows/states.ts';
import { LONGEST_WINDOW, letThrough, type MaskingRule } from '../rules/masking.ts';
import { STATE } from '../rules/watcher.ts';
import type { DefinitionCache } from './definitions.ts';
import type { MatchedEvent, MatchedEvents } from './match.ts';

/** What was found out about events. */
export class Found {
  readonly matched: MatchedEvent[] = [];
  readonly counts = new Counts();
  readonly errors: MatchedEvents['errors'] = [];
  /** The keys of events that get turns of their own, by project. */
  readonly late = new Map<number, Buffer[]>();
  /** Events that are no longer there. */
  missing = 0;
  /** How many have matched of each project. */
  readonly #matchedOf = new Map<number, number>();

  /** From `room` matches on, what is left of their project is late. */
  add(matched: MatchedEvent, room: number): void {
    const { projectId } = matched;
    this.matched.push(matched);
    const count = (this.#matchedOf.get(projectId) ?? 0) + 1;
    this.#matchedOf.set(projectId, count);
    if (count === room && !this.late.has(projectId)) this.late.set(projectId, []);
  }

  /** The projects whose events led to much: to many invocations, or to more than a turn takes. */
  heavy(many: number): number[] {
    const some = [...this.#matchedOf].filter(([, count]) => count >= many).map(([projectId]) => projectId);
    return [...new Set([...some, ...this.late.keys()])];
  }

  addLate(projectId: number, keys: Buffer): void {
    const list = this.late.get(projectId);
    if (list) list.push(keys);
    else this.late.set(projectId, [keys]);
  }
}

export interface WriteOptions {
  definitions: Pick<DefinitionCache, 'masking'>;
  /** The functions that are not run because of what they cost. */
  disabled: ReadonlyMap<string, DisabledFunction>;
  /** The batches that are done. */
  batches: readonly number[];
  /** Takes some of what is about to be queued. */
  take?(invocations: readonly NewInvocation[]): NewClaim | undefined;
}

/** Writes what was found. Returns what has matched and is not left out, and what of it was claimed. */
export async function writeFound(
  client: Transaction,
  { matched, counts, errors, late }: Found,
  { definitions, disabled, batches, take }: WriteOptions,
): Promise<{ invocations: readonly NewInvocation[]; claimed: readonly QueueRow[] }> {
  const enabled = await withoutDisabled(client, matched, counts, disabled);
  const passed = await unmasked(client, definitions, enabled, counts);
  for (const { projectId, functionId } of passed) counts.add(projectId, functionId, 'other', 'triggered');
  for (const [projectId, keys] of late) {
    if (keys.length > 0) await addLateKeys(client, projectId, Buffer.concat(keys));
  }
  const now = new Date().toISOString();
  await addLogs(
    client,
    errors.map(({ uuid, message, ...one }) => ({
      ...one,
      ...{ instanceId: uuid, timestamp: now, level: 'error' },
      message: cleanText(`Error filtering event ${uuid}: ${message}`),
    })),
  );
  const invocations = passed.toSorted(byTime).map(invocationOf);
  const { claimed, flooded } = await queueDispatched(client, {
    ...{ invocations, claim: take?.(invocations), counts: counts.all, batches },
  });
  await keepPositions(
    client,
    invocations.filter(({ functionId }) => flooded.has(functionId)),
  );
  return { invocations, claimed };
}

/** Leaves out functions that are not run because of what they cost. Their invocations can be run later. */
async function withoutDisabled(
  client: Transaction,
  matched: MatchedEvent[],
  counts: Counts,
  disabled: WriteOptions['disabled'],
): Promise<MatchedEvent[]> {
  if (disabled.size === 0) return matched;
  const refused = matched.filter(({ functionId }) => disabled.has(functionId));
  for (const { projectId, functionId } of refused) {
    const isForGood = disabled.get(functionId)?.state === STATE.disabledForGood;
    const name = isForGood ? 'disabled_permanently' : 'disabled_temporarily';
    counts.add(projectId, functionId, 'failure', name);
  }
  await recordRefused(client, refused.map(invocationOf), DISABLED);
  return matched.filter(({ functionId }) => !disabled.has(functionId));
}

/** Leaves out what is masked. */
async function unmasked(
  client: Transaction,
  definitions: Pick<DefinitionCache, 'masking'>,
  matched: readonly MatchedEvent[],
  counts: Counts,
): Promise<MatchedEvent[]> {
  const requests = new Map<string, MaskRequest & { rule: MaskingRule }>();
  for (const { projectId, functionId, mask } of matched) {
    const rule = mask === null ? null : definitions.masking(projectId, functionId);
    if (mask === null || !rule) continue;
    const key = `${functionId}:${mask}`;
    const known = requests.get(key);
    if (known) known.invocations += 1;
    else {
      const ttl = Math.min(rule.ttl ?? LONGEST_WINDOW, LONGEST_WINDOW);
      requests.set(key, {
        ...{ project_id: projectId, function_id: functionId },
        ...{ key: mask, ttl, invocations: 1, rule },
      });
    }
  }
  const before = await countMasked(client, [...requests.values()]);
  const windows = new Map(
    [...requests].map(([key, { rule }], index) => [key, { rule, count: before[index]! }]),
  );
  return matched.filter(({ projectId, functionId, mask }) => {
    const window = windows.get(`${functionId}:${mask}`);
    if (!window) return true;
    const passes = letThrough(window.count, window.rule.threshold);
    window.count += 1;
    if (!passes) counts.add(projectId, functionId, 'other', 'masked');
    return passes;
  });
}

/** The order in which events came in, and of those that came in together, in which they happened. */
const byTime = (one: MatchedEvent, other: MatchedEvent): number =>
  one.receivedAt - other.receivedAt || compareTexts(one.timestamp.slice(0, -1), other.timestamp.slice(0, -1));
const compareTexts = (one: string, other: string) => (one < other ? -1 : one > other ? 1 : 0);

const invocationOf = ({ receivedAt, ...one }: MatchedEvent): NewInvocation => ({
  ...one,
  ...{ id: uuidv7(), clock: receivedAt, seed: randomInt(2 ** 31) },
});
