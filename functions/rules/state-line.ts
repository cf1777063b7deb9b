import { STATE } from './watcher.ts';

/** The state of a function has changed because of what its runs cost. */
export interface StateChange {
  projectId: number;
  functionId: string;
  state: number;
}

const SENTENCES: Record<number, string> = {
  [STATE.healthy]: 'The function is healthy again.',
  [STATE.degraded]: 'The function takes long. Others come first until it is faster.',
  [STATE.disabled]: 'The function took too long. It is not run for ten minutes.',
  [STATE.disabledForGood]:
    'The function took too long again and again. It is not run until somebody saves it.',
};

/** A line of the log that says that the state of a function has changed. */
export const stateLine = ({ projectId, functionId, state }: StateChange) => ({
  ...{ projectId, functionId, instanceId: functionId, timestamp: new Date().toISOString() },
  ...{
    level: state === STATE.healthy ? ('info' as const) : ('warn' as const),
    message: SENTENCES[state] ?? '',
  },
});
