import type { Applied } from './apply.ts';
import type { Chain, Transformable } from './definition.ts';
import type { Told } from './tally.ts';

/** Events for a thread. */
export interface TransformJob {
  projectId: number;
  version: number;
  /** Absent: the thread may know the transformations already. */
  chain?: Chain;
  events: readonly Transformable[];
  /** Transformations that do not run, with the reason. */
  suspended: readonly [functionId: string, reason: string][];
  /** When this much processor time is used, the thread begins no further event. */
  milliseconds: number;
  /** The file with the locations of addresses. */
  geoip?: string | undefined;
}

export type TransformAnswer =
  | { needsChain: true }
  | {
      needsChain: false;
      /** Of the first events. Of one that did not change, the properties are left out. */
      applied: Applied[];
      told: Told;
      milliseconds: number;
    };
