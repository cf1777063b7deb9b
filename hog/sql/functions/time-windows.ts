// Functions that sort times into windows: `tumble` into windows side by side, `hop` into windows that overlap.
import { addInterval } from '../arithmetic.ts';
import { tupleElement, tupleOf } from '../compound.ts';
import { fault } from '../errors.ts';
import { type Sql, sql } from '../sql.ts';
import { isTuple, type Value } from '../types.ts';
import { timeType } from '../zones.ts';
import { back, wall } from './intervals.ts';
import { custom, type FunctionCall, type FunctionSpec, type FunctionTable, zoneAt } from './spec.ts';

function interval(value: Value | undefined, span: FunctionCall['span']): Sql {
  if (value?.type !== 'interval') throw fault('An interval is needed here', span);
  return value.sql;
}

/**
 * Returns the window of a time: from its start to its end. Windows begin every `hops` intervals; of several that a time lies in, it
 * is the first one.
 */
function windowOf(call: FunctionCall, hops: boolean): [start: Value, end: Value] {
  const { place, args, span } = call;
  const step = interval(args[1], span);
  const length = hops ? interval(args[2], span) : step;
  const type = zoneAt(call, hops ? 3 : 2) ?? timeType(args[0]!);
  const begins = back(place, sql`hq.start_of_interval(${wall(place, args[0]!, span, type)}, ${step})`, type);
  const end = addInterval(place, begins, step, span);
  return [hops ? addInterval(place, end, sql`(- ${length})`, span) : begins, end];
}

const LEAST = { tumble: 2, hop: 3 } as const;

/** Declares a function that returns both ends of a window. */
const both = (kind: 'tumble' | 'hop'): FunctionSpec =>
  custom(LEAST[kind], LEAST[kind] + 1, (call) => tupleOf(windowOf(call, kind === 'hop')));

/** Declares a function that returns one end of a window, or of a tuple that is one. */
const end = (kind: 'tumble' | 'hop', which: 1 | 2): FunctionSpec =>
  custom(1, LEAST[kind] + 1, (call) => {
    const { args, span } = call;
    const [value] = args as [Value];
    if (args.length === 1 && isTuple(value.type)) return tupleElement(value, which, span);
    if (args.length < LEAST[kind]) {
      throw fault(
        `This function takes a window, or a time and ${LEAST[kind] === 2 ? 'an interval' : 'two intervals'}`,
        span,
      );
    }
    return windowOf(call, kind === 'hop')[which - 1]!;
  });

export const TIME_WINDOWS: FunctionTable = {
  tumble: both('tumble'),
  tumbleStart: end('tumble', 1),
  tumbleEnd: end('tumble', 2),
  hop: both('hop'),
  hopStart: end('hop', 1),
  hopEnd: end('hop', 2),
};
