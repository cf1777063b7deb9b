import { type Pool, type Queryable, type Transaction, transaction } from '../../db/pool.ts';
import type { Actor } from '../../tenancy/actor.ts';
import { type FunctionKey, type FunctionRow, keyOf } from '../rows/functions.ts';
import {
  cancelInvocations,
  dismissInvocations,
  findSome,
  type InvocationSelection,
  type Position,
} from '../rows/history.ts';
import { wakeNext } from '../rows/lines.ts';
import { cancelPositions } from '../rows/positions.ts';
import { auditFunction, WHO } from './audit.ts';

/** The most invocations of one request, and of one transaction. */
export const MOST_SETTLED = 10_000;
const AT_ONCE = 1_000;
/** A search that finds little looks at so many pieces in one request. */
const MOST_PIECES = 10;

export type Selected = Omit<InvocationSelection, keyof FunctionKey | 'isOpen'>;

export interface Settled {
  count: number;
  /** Whether there may be more. */
  isMore: boolean;
  /** Then what comes before this time has been looked at. */
  lookedAtBefore: string | null;
}

export interface SettleDependencies {
  pool: Pool;
  /** Finds out what is meant: its cost is decided by whoever asks. */
  find<T>(work: (queryable: Queryable) => Promise<T>): Promise<T>;
}

/** Takes failed invocations out of the list of those that somebody has to look at. */
export function dismissFailed(
  deps: SettleDependencies,
  actor: Actor,
  row: FunctionRow,
  selected: Selected,
): Promise<Settled> {
  const key = keyOf(row);
  return inPieces(deps, { ...key, ...selected }, false, async (client, ids) => {
    const count = await dismissInvocations(client, key, ids);
    if (count > 0) await auditFunction(client, actor, key, 'dismissed', { name: row.name, count });
    return count;
  });
}

/** Ends invocations that wait. What is in progress goes on. What is kept as positions counts by the time at which it was stored. */
export async function cancelWaitingOf(
  deps: SettleDependencies,
  actor: Actor,
  row: FunctionRow,
  selected: Selected,
): Promise<Settled> {
  const key = keyOf(row);
  const reason = `Cancelled by ${WHO[actor.kind]}.`;
  const audited = (client: Transaction, count: number) =>
    count > 0 && auditFunction(client, actor, key, 'invocations_cancelled', { name: row.name, count });
  // The positions come first: what of them comes into the queue meanwhile is due later than `before` may say. They have had no
  // attempt in which something could be searched.
  const isOfTime = !selected.ids && !selected.search;
  const positions = !isOfTime
    ? 0
    : await transaction(deps.pool, async (client) => {
        const count = await cancelPositions(client, key, selected, reason);
        await audited(client, count);
        return count;
      });
  const settled = await inPieces(deps, { ...key, ...selected }, true, async (client, ids) => {
    const { count, lines } = await cancelInvocations(client, key, ids, reason);
    await wakeNext(
      client,
      lines.map((line) => ({ ...key, line })),
    );
    await audited(client, count);
    return count;
  });
  return { ...settled, count: settled.count + positions };
}

/** Settles piece after piece until nothing is left, or one request has done enough. */
async function inPieces(
  { pool, find }: SettleDependencies,
  selection: InvocationSelection,
  waiting: boolean,
  settle: (client: Transaction, ids: readonly string[]) => Promise<number>,
): Promise<Settled> {
  let count = 0;
  let position: Position | undefined;
  for (let pieces = 1; ; pieces += 1) {
    const { ids, next } = await find((queryable) =>
      findSome(queryable, selection, { waiting, position, limit: AT_ONCE }),
    );
    if (ids.length > 0) count += await transaction(pool, (client) => settle(client, ids));
    if (next === undefined) return { count, isMore: false, lookedAtBefore: null };
    if (count >= MOST_SETTLED || pieces >= MOST_PIECES) {
      return { count, isMore: true, lookedAtBefore: next.value };
    }
    position = next;
  }
}
