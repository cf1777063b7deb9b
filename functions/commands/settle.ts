import { type Pool, transaction } from '../../db/pool.ts';
import type { Actor } from '../../tenancy/actor.ts';
import { type FunctionKey, type FunctionRow, keyOf } from '../rows/functions.ts';
import { cancelInvocations, dismissInvocations, type InvocationSelection } from '../rows/history.ts';
import { wakeNext } from '../rows/lines.ts';
import { auditFunction, WHO } from './audit.ts';

/** The most invocations of one request, and of one transaction. */
export const MOST_SETTLED = 10_000;
const AT_ONCE = 1_000;

export type Selected = Omit<InvocationSelection, keyof FunctionKey | 'isOpen'>;

export interface Settled {
  count: number;
  /** Whether there may be more. */
  isMore: boolean;
}

/** Takes failed invocations out of the list of those that somebody has to look at. */
export function dismissFailed(
  { pool }: { pool: Pool },
  actor: Actor,
  row: FunctionRow,
  selected: Selected,
): Promise<Settled> {
  const key = keyOf(row);
  return inPieces(() =>
    transaction(pool, async (client) => {
      const count = await dismissInvocations(client, { ...key, ...selected }, AT_ONCE);
      if (count > 0) await auditFunction(client, actor, key, 'dismissed', { name: row.name, count });
      return count;
    }),
  );
}

/** Ends invocations that wait. What is in progress goes on. */
export function cancelWaitingOf(
  { pool }: { pool: Pool },
  actor: Actor,
  row: FunctionRow,
  selected: Selected,
): Promise<Settled> {
  const key = keyOf(row);
  const reason = `Cancelled by ${WHO[actor.kind]}.`;
  return inPieces(() =>
    transaction(pool, async (client) => {
      const { count, lines } = await cancelInvocations(client, { ...key, ...selected }, reason, AT_ONCE);
      await wakeNext(
        client,
        lines.map((line) => ({ ...key, line })),
      );
      if (count > 0) {
        await auditFunction(client, actor, key, 'invocations_cancelled', { name: row.name, count });
      }
      return count;
    }),
  );
}

/** Settles pieces until nothing is left, or one request has done enough. */
async function inPieces(settle: () => Promise<number>): Promise<Settled> {
  let count = 0;
  for (;;) {
    const settled = await settle();
    count += settled;
    if (settled < AT_ONCE) return { count, isMore: false };
    if (count >= MOST_SETTLED) return { count, isMore: true };
  }
}
