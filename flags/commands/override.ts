import { refuse } from '../../refusals.ts';
import type { Actor } from '../../tenancy/actor.ts';
import { isRecord, own } from '../engine/definition.ts';
import { deleteOverride, type FlagRow, lockFlags, putOverride } from '../rows/flags.ts';
import { auditFlag } from './audit.ts';
import type { FlagCommandDependencies } from './dependencies.ts';
import { flagTransaction } from './turns.ts';

/** Definitions carry all of them, so there cannot be many. */
export const MOST_OVERRIDES = 1_000;

/** Sets the value of a flag for one distinct id by hand, or takes it away (undefined). */
export async function overrideFlag(
  deps: FlagCommandDependencies,
  actor: Actor,
  flag: FlagRow,
  distinctId: string,
  value: boolean | string | undefined,
): Promise<void> {
  if (typeof value === 'string' && !variantsOf(flag).includes(value)) {
    const known = variantsOf(flag);
    const choices = known.length > 0 ? `its variants are ${known.join(', ')}` : 'it has no variants';
    throw refuse.invalid('value', `The flag has no variant "${value.slice(0, 60)}": ${choices}.`);
  }
  await flagTransaction(deps.pool, flag.project_id, async (client) => {
    const key = { projectId: flag.project_id, flagId: flag.id };
    await lockFlags(client, flag.project_id);
    if (value === undefined) {
      if (!(await deleteOverride(client, key, distinctId))) throw refuse.absent();
    } else {
      const userId = actor.kind === 'user' ? actor.userId : null;
      const count = await putOverride(client, key, { distinctId, value, userId });
      if (count > MOST_OVERRIDES) {
        const message = `A flag may have a value by hand for ${MOST_OVERRIDES} distinct ids. Use a cohort for more.`;
        throw refuse.invalid('distinct_id', message, { code: 'limit' });
      }
    }
    await auditFlag(client, actor, flag, 'updated', {
      name: flag.key,
      override: { distinct_id: distinctId, value: value ?? null },
    });
  });
}

function variantsOf(flag: FlagRow): string[] {
  const filters: unknown = JSON.parse(flag.filters);
  const multivariate = isRecord(filters) ? own(filters, 'multivariate') : undefined;
  const variants = isRecord(multivariate) ? own(multivariate, 'variants') : undefined;
  return Array.isArray(variants) ? variants.map((one: { key: string }) => one.key) : [];
}
