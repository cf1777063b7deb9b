import type { DeliveryPolicy } from './policy.ts';

/** Attempts are claimed so long before they begin, in milliseconds, so that a claim takes several. */
export const AHEAD = 200;

export interface Situation {
  policy: DeliveryPolicy;
  /** How many invocations of the function are in progress. */
  inProgress: number;
  /** In how many milliseconds the next attempt may begin, because of the rate. Below 0: now. */
  nextIn: number;
  /** How many places there are for it. */
  places: number;
}

/** What may be claimed now. */
export interface Allowance {
  count: number;
  /** In how many milliseconds the first attempt may begin, and how far apart all of them are. */
  first: number;
  apart: number;
  /** How many the rate alone would allow. */
  ofRate: number;
}

export function allowanceOf({ policy, inProgress, nextIn, places }: Situation): Allowance {
  const { max_concurrency: most, rate_per_second: rate } = policy;
  const free = most === undefined ? places : Math.min(places, Math.max(0, most - inProgress));
  if (rate === undefined) return { count: free, first: 0, apart: 0, ofRate: Number.POSITIVE_INFINITY };
  const apart = 1_000 / rate;
  const first = Math.max(0, nextIn);
  const ofRate = first > AHEAD ? 0 : Math.floor((AHEAD - first) / apart) + 1;
  return { count: Math.min(free, ofRate), first, apart, ofRate };
}

/** In how many milliseconds the next claim is worth while, because of the rate. Null: the rate is not what it waits for. */
export function nextClaim({ first, apart, ofRate }: Allowance, taken: number): number | null {
  if (taken < ofRate) return null;
  return Math.max(1, Math.ceil(first + taken * apart - AHEAD));
}
