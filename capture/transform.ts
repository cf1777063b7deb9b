import type { CapturedEvent } from './captured-event.ts';
import type { Notices } from './parse/notices.ts';

/** The project of a request, as far as transformations need it. */
export interface TransformedProject {
  id: number;
  /** The version of its enabled transformations. Null: it has none. Undefined: it is not known. */
  transformations?: number | null | undefined;
  /** About how much the request takes in memory. */
  bytes?: number;
}

/**
 * Changes, adds or removes events of a request between parsing and storing. It may change the given objects. It returns
 * a promise only if it has to wait, which is rare. Throws a Refusal if the request must be sent again.
 */
export type TransformEvents = (
  project: TransformedProject,
  events: CapturedEvent[],
  notices: Pick<Notices, 'skip'>,
) => CapturedEvent[] | Promise<CapturedEvent[]>;

/** Transforms events in steps, one after the other. */
export function inSteps(...steps: (TransformEvents | undefined)[]): TransformEvents | undefined {
  const given = steps.filter((one) => one !== undefined);
  if (given.length < 2) return given[0];
  return (project, events, notices) =>
    given.reduce<CapturedEvent[] | Promise<CapturedEvent[]>>(
      (current, step) =>
        current instanceof Promise
          ? current.then((all) => step(project, all, notices))
          : step(project, current, notices),
      events,
    );
}
