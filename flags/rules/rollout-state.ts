import { isObject } from '../../values/json-object.ts';

/** How far a flag is rolled out, by its conditions alone. */
export interface RolloutState {
  state: 'fully_rolled_out' | 'partial' | 'not_rolled_out';
  /** The variant that everybody gets. Null: not everybody gets the same one, or there are no variants. */
  variant: string | null;
  /** Whether some condition set is for some persons or groups only. */
  isTargeted: boolean;
  /** The largest share of a condition set, in percent. */
  most: number;
  isMultivariate: boolean;
}

const listIn = (value: unknown) => (Array.isArray(value) ? value.filter(isObject) : []);
const share = (value: unknown): number => (value === undefined || value === null ? 100 : Number(value));

/** Says how far the filters of a flag roll it out. */
export function rolloutStateOf(filters: Record<string, unknown>): RolloutState {
  const { multivariate } = filters;
  const groups = listIn(filters.groups).map((group) => ({
    isForAll: listIn(group.properties).length === 0,
    share: share(group.rollout_percentage),
    variant: typeof group.variant === 'string' && group.variant !== '' ? group.variant : undefined,
  }));
  const variants = isObject(multivariate) ? listIn(multivariate.variants) : [];
  const whole = variants.find((one) => share(one.rollout_percentage) >= 100)?.key;
  const open = groups.filter((group) => group.isForAll && group.share >= 100);
  const given = open.map((group) => group.variant ?? whole).find((key) => key !== undefined);
  const isFull = open.length > 0 && (variants.length === 0 || given !== undefined);
  const most = Math.max(0, ...groups.map((group) => group.share));
  return {
    state: isFull ? 'fully_rolled_out' : most > 0 ? 'partial' : 'not_rolled_out',
    variant: isFull && variants.length > 0 ? String(given) : null,
    isTargeted: groups.some((group) => !group.isForAll),
    most,
    isMultivariate: variants.length > 0,
  };
}
