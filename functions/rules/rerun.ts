/** What an invocation came to that has ended. */
export const ENDED_STATUSES = ['succeeded', 'failed', 'cancelled'] as const;
export type EndedStatus = (typeof ENDED_STATUSES)[number];

/** Which ended invocations a rerun takes, besides the time of their end. */
export interface RerunSelection {
  /** One, or several as a list. */
  status: EndedStatus | EndedStatus[];
  /** A part of the error, of a request or of an answer. Case does not matter. */
  search: string | null;
}

/** Which version runs. `original`: the one that ran before. */
export type RerunVersion = 'original' | 'current' | number;
