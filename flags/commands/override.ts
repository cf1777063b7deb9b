import { changeTransaction } from '../../db/change-turns.ts';
import { refuse } from '../../refusals.ts';
import type { Actor } from '../../tenancy/actor.ts';
import { isObject } from '../../values/json-object.ts';
import { own } from '../engine/definition.ts';
import { deleteOverride, type FlagRow, lockFlags, putOverride } from '../rows/flags.ts';
import { FLAG_LIMITS } from '../rules/limits.ts';
import { auditFlag } from './audit.ts';
import type { FlagCommandDependencies } from './dependencies.ts';

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
  await changeTransaction(deps.pool, flag.project_id, async (client) => {
    const key = { projectId: flag.project_id, flagId: flag.id };
    await lockFlags(client, flag.project_id);
    if (value === undefined) {
      if (!(await deleteOverride(client, key, distinctId))) throw refuse.absent();
    } else {
      const userId = actor.kind === 'user' ? actor.userId : null;
      const { ofFlag, ofProject } = await putOverride(client, key, { distinctId, value, userId });
      const { overrides, overridesOfProject } = FLAG_LIMITS;
      if (ofFlag > overrides) {
        const message = `A flag may have a value by hand for ${overrides} distinct ids. Use a cohort for more.`;
        throw refuse.invalid('distinct_id', message, { code: 'limit' });
      }
      if (ofProject > overridesOfProject) {
        const message = `The flags of a project may have ${overridesOfProject} values by hand together. Use a cohort for more.`;
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
  const multivariate = isObject(filters) ? own(filters, 'multivariate') : undefined;
  const variants = isObject(multivariate) ? own(multivariate, 'variants') : undefined;
  return Array.isArray(variants) ? variants.map((one: { key: string }) => one.key) : [];
}
