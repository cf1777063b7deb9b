export interface FlagState {
  active: boolean;
  archived: boolean;
  deleted: boolean;
  created_at: string;
  /** Whether everybody gets the same value, so that the flag decides nothing. */
  for_everybody: boolean;
  last_called_at: string | null;
}

/** After so many days without a call, or in which it decided nothing, a flag is stale. The list of flags counts alike. */
export const STALE_DAYS = 30;
const DAY = 86_400_000;

/** What state a flag is in, and why. */
export function statusOf(flag: FlagState, now: number): { status: string; reason: string } {
  if (flag.deleted) return { status: 'DELETED', reason: 'Flag has been deleted' };
  if (flag.archived) return { status: 'ARCHIVED', reason: 'Flag has been archived' };
  if (!flag.active) return { status: 'INACTIVE', reason: 'Flag is disabled' };
  const isOlder = (at: string) => now - Date.parse(at) > STALE_DAYS * DAY;
  if (flag.last_called_at !== null) {
    if (!isOlder(flag.last_called_at)) return { status: 'ACTIVE', reason: 'Flag is active' };
    return { status: 'STALE', reason: `Nobody has called the flag for ${STALE_DAYS} days` };
  }
  if (flag.for_everybody && isOlder(flag.created_at)) {
    const reason = `The flag is older than ${STALE_DAYS} days, nobody has called it, and everybody gets the same value`;
    return { status: 'STALE', reason };
  }
  return { status: 'ACTIVE', reason: 'Flag is active' };
}
