export interface FlagState {
  active: boolean;
  archived: boolean;
  deleted: boolean;
  created_at: string;
}

const STALE_DAYS = 30;
const DAY = 86_400_000;

type Fields = Record<string, unknown>;
const isRecord = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** Whether everybody gets the same value, so that the flag decides nothing. */
function isForEverybody(filters: Fields): boolean {
  const groups = Array.isArray(filters.groups) ? filters.groups.filter(isRecord) : [];
  const whole = groups.find((group) => {
    const properties = Array.isArray(group.properties) ? group.properties : [];
    const share = group.rollout_percentage ?? 100;
    return properties.length === 0 && Number(share) >= 100;
  });
  if (!whole) return false;
  const variants = isRecord(filters.multivariate) ? filters.multivariate.variants : undefined;
  if (!Array.isArray(variants) || variants.length === 0) return true;
  return variants.some((one) => isRecord(one) && Number(one.rollout_percentage) >= 100);
}

/** What state a flag is in, and why. */
export function statusOf(flag: FlagState, filters: unknown, now: number): { status: string; reason: string } {
  if (flag.deleted) return { status: 'DELETED', reason: 'Flag has been deleted' };
  if (flag.archived) return { status: 'ARCHIVED', reason: 'Flag has been archived' };
  if (!flag.active) return { status: 'INACTIVE', reason: 'Flag is disabled' };
  const isOld = now - Date.parse(flag.created_at) > STALE_DAYS * DAY;
  if (isOld && isRecord(filters) && isForEverybody(filters)) {
    const reason = `The flag is older than ${STALE_DAYS} days, and everybody gets the same value`;
    return { status: 'STALE', reason };
  }
  return { status: 'ACTIVE', reason: 'Flag is active' };
}
