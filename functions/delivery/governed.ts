import { type Pool, type Transaction, transaction } from '../../db/pool.ts';
import { claimInOrder, lineUp, standBack } from '../rows/lines.ts';
import { addPaces, countHeld, lockPaces, type Pace, storeNext } from '../rows/paces.ts';
import { claim, type QueueRow, type Want } from '../rows/queue.ts';
import { type Allowance, allowanceOf, nextClaim } from '../rules/pace.ts';
import type { BatchPolicy } from '../rules/policy.ts';
import { takeBatches } from './batches.ts';

/** What a claim has found for a function. */
export interface GovernedClaim {
  rows: QueueRow[];
  /** When each of the rows may be attempted, in milliseconds from the beginning of the claim. */
  startsIn: number[];
  /** In how many milliseconds another claim is worth while. Null: when something ends, or is queued. */
  again: number | null;
  /** Whether everything that was due is taken. */
  isEmpty: boolean;
  /** What waits for others of its batch. Undefined: nothing does. */
  gathering?: Gathering;
}

/** What was due by a time of the database and is not taken: it waits for others, by the policy of then. */
export interface Gathering {
  /** In ISO 8601. */
  since: string;
  policy: BatchPolicy;
}

/** Another worker claims for the same function at the moment. */
const AFTER_OTHERS = 20;
const BUSY: GovernedClaim = { rows: [], startsIn: [], again: AFTER_OTHERS, isEmpty: false };

interface Claiming {
  want: Want;
  pace: Pace;
  allowance: Allowance;
}

const key = ({ want: { projectId, functionId } }: Claiming) => ({ projectId, functionId });
const isBatched = ({ pace }: Claiming) => pace.delivery?.batch !== undefined;
const isOrdered = ({ pace }: Claiming) => pace.delivery?.ordering === 'distinct_id';

/**
 * Claims invocations of functions that have a policy, as far as it lets them begin now. Only one worker at a time does
 * this for a function, so that all workers together keep to the policy.
 */
export class GovernedClaims {
  readonly #pool: Pool;
  /** Functions that have a row to be locked. */
  readonly #known = new Set<string>();

  constructor(pool: Pool) {
    this.#pool = pool;
  }

  /** Returns what was found for each of the wants. */
  async claim(wants: readonly Want[], lease: { lease: string; seconds: number }): Promise<GovernedClaim[]> {
    const unknown = wants.filter(({ functionId }) => !this.#known.has(functionId));
    if (unknown.length > 0) {
      await addPaces(this.#pool, unknown);
      for (const { functionId } of unknown) this.#known.add(functionId);
    }
    return transaction(this.#pool, async (client) => {
      const paces = new Map((await lockPaces(client, wants)).map((one) => [one.function_id, one]));
      const running = wants.flatMap((want) => {
        const pace = paces.get(want.functionId);
        return pace && !pace.paused ? [{ want, pace }] : [];
      });
      const claiming = await allowances(client, running);
      const found = await claimAllowed(client, claiming, lease);
      return wants.map((want): GovernedClaim => {
        if (paces.get(want.functionId)?.paused) return { ...BUSY, again: null };
        return found.get(want.functionId) ?? BUSY;
      });
    });
  }
}

async function allowances(
  client: Transaction,
  running: readonly Pick<Claiming, 'want' | 'pace'>[],
): Promise<Claiming[]> {
  const counted = running.filter(({ pace }) => pace.delivery?.max_concurrency !== undefined);
  const held =
    counted.length > 0
      ? await countHeld(
          client,
          counted.map(({ want }) => want),
        )
      : new Map<string, number>();
  return running.map(({ want, pace }) => ({
    ...{ want, pace },
    allowance: allowanceOf({
      ...{ policy: pace.delivery ?? {}, places: want.count },
      ...{ inProgress: held.get(want.functionId) ?? 0, nextIn: pace.next_in },
    }),
  }));
}

async function claimAllowed(
  client: Transaction,
  claiming: readonly Claiming[],
  lease: { lease: string; seconds: number },
): Promise<Map<string, GovernedClaim>> {
  const free = claiming.filter(({ allowance }) => allowance.count > 0);
  const counted = ({ want, allowance }: Claiming) => ({ ...want, count: allowance.count });
  const together = free.filter(isBatched);
  const ordered = free.filter((one) => isOrdered(one) && !isBatched(one));
  const others = free.filter((one) => !isOrdered(one) && !isBatched(one));
  const rows: QueueRow[] = [];
  const ready = new Map<string, number | null>();
  for (const one of together) {
    const policy = one.pace.delivery?.batch as BatchPolicy;
    const taken = await takeBatches(client, key(one), policy, { ...lease, count: one.allowance.count });
    rows.push(...taken.rows);
    ready.set(one.want.functionId, taken.next);
  }
  let moved: ReadonlyMap<string, number> = new Map();
  if (ordered.length > 0) {
    await lineUp(
      client,
      ordered.map((one) => ({ ...key(one), isFully: one.pace.is_unlined })),
    );
    moved = await standBack(client, ordered.map(key));
    rows.push(...(await claimInOrder(client, ordered.map(counted), lease)));
  }
  if (others.length > 0) rows.push(...(await claim(client, others.map(counted), { ...lease, isHeld: true })));
  const found = new Map<string, GovernedClaim>();
  const next: Parameters<typeof storeNext>[1][number][] = [];
  for (const one of claiming) {
    const { want, pace, allowance } = one;
    const own = rows.filter((row) => row.function_id === want.functionId).sort((a, b) => a.seq - b.seq);
    const { first, apart, count } = allowance;
    if (own.length > 0 && apart > 0) {
      next.push({ ...key(one), now: pace.now, nextIn: first + own.length * apart });
    }
    const gathered = ready.get(want.functionId) ?? null;
    const hasMoved = (moved.get(want.functionId) ?? 0) > 0;
    found.set(want.functionId, {
      rows: own,
      startsIn: own.map((_, index) => first + index * apart),
      again: earlier(againIn(one, own.length, hasMoved), gathered),
      isEmpty: count > 0 && own.length < count && !isOrdered(one) && !isBatched(one),
      ...(gathered ? { gathering: { since: pace.now, policy: pace.delivery?.batch as BatchPolicy } } : {}),
    });
  }
  if (next.length > 0) await storeNext(client, next);
  return found;
}

const earlier = (one: number | null, other: number | null): number | null =>
  one === null || other === null ? (one ?? other) : Math.min(one, other);

/** In how many milliseconds another claim is worth while. */
function againIn({ want, allowance }: Claiming, taken: number, hasMoved: boolean): number | null {
  if (taken < allowance.count) return hasMoved ? 0 : null;
  const byRate = nextClaim(allowance, taken);
  if (byRate !== null) return byRate;
  // There was room for as many as the caller has places for: there may be more.
  return taken === want.count && taken > 0 ? 0 : null;
}
