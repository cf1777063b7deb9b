/** A replay runs a function for past events, a broadcast for persons, a rerun for invocations that have ended. */
export const REPLAY_KINDS = ['replay', 'broadcast', 'rerun'] as const;
export type ReplayKind = (typeof REPLAY_KINDS)[number];

export const REPLAY_STATUSES = ['running', 'paused', 'completed', 'cancelled', 'failed'] as const;
export type ReplayStatus = (typeof REPLAY_STATUSES)[number];

/** What a replay waits for: room in the queue of its function, or that the function is no longer disabled for its cost. */
export type Hold = 'queue' | 'watcher';

export const isActive = (status: ReplayStatus): boolean => status === 'running' || status === 'paused';

/** So many replays, broadcasts, reruns and counts of a project may be in progress at once. */
export const MOST_ACTIVE = 20;

/** So many invocations of a function may wait before a replay adds no more. */
export const MOST_WAITING = 100_000;
export const RATE = { default: 100, most: 10_000 } as const;

/** How many seconds of a rate one call queues at once. */
const WINDOW = 10;
const MOST_AT_ONCE = 10_000;

/** How many invocations one call may queue. What comes after waits for the time that these take by the rate. */
export const allowanceOf = (rate: number | null): number =>
  rate === null ? MOST_AT_ONCE : Math.min(MOST_AT_ONCE, rate * WINDOW);

export const SWITCHED_OFF = 'The function was switched off.';
export const DELETED = 'The function was deleted.';
