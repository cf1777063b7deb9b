import { runtimeFailure } from '../runtime/errors.ts';
import { compare, getProperty } from '../runtime/operators.ts';
import { library } from '../runtime/stl.ts';
import { errorValue, type HogValue, newHogCallable, newHogClosure } from '../runtime/values.ts';
import type { Run } from './runtime.ts';
import { callValue, table } from './runtime.ts';

/** A library function that is written in Hog (hog/library), as JavaScript. */
export interface Written {
  arity: number;
  call(run: Run, args: HogValue[]): HogValue;
}

function native(run: Run, name: string, args: HogValue[]): HogValue {
  const fn = library.get(name);
  if (!fn) throw runtimeFailure(`Unsupported function call: ${name}`);
  return fn.call(args, run.around);
}

/** Yields the values that `for (let x in list)` visits. Each one costs a step. */
function* each(run: Run, list: HogValue): Generator<HogValue> {
  const values = native(run, 'values', [list]);
  const length = Number(native(run, 'length', [values]));
  for (let i = 1; i <= length; i++) {
    run.meter.step();
    yield getProperty(values, i);
  }
}

const arrayMap: Written['call'] = (run, [fn, list]) => {
  const result: HogValue[] = [];
  for (const item of each(run, list)) result.push(callValue(run, [item], fn));
  return result;
};

function sortByKey(run: Run, name: string, [key, list]: HogValue[]): HogValue {
  const values = native(run, 'values', [list]);
  return native(run, name, [values, arrayMap(run, [key, values])]);
}

function member(run: Run, name: string, id: HogValue, ids: HogValue): boolean {
  if (compare('==', ids, null)) {
    const reason = `${name}() requires cohort membership to be loaded for this evaluation`;
    table.raise(errorValue('Error', reason));
  }
  for (const one of each(run, ids)) if (compare('==', one, id)) return true;
  return false;
}

const toPart = newHogClosure(
  newHogCallable('stl', { name: 'toInt', argCount: 1, upvalueCount: 0, ip: -1, chunk: 'stl' }),
);

export const writtenFunctions: ReadonlyMap<string, Written> = new Map<string, Written>([
  ['arrayMap', { arity: 2, call: arrayMap }],
  [
    'arrayFilter',
    {
      arity: 2,
      call: (run, [fn, list]) => {
        const result: HogValue[] = [];
        for (const item of each(run, list)) if (callValue(run, [item], fn)) result.push(item);
        return result;
      },
    },
  ],
  [
    'arrayExists',
    {
      arity: 2,
      call: (run, [fn, list]) => {
        for (const item of each(run, list)) if (callValue(run, [item], fn)) return true;
        return false;
      },
    },
  ],
  [
    'arrayCount',
    {
      arity: 2,
      call: (run, [fn, list]) => {
        let result = 0;
        for (const item of each(run, list)) if (callValue(run, [item], fn)) result++;
        return result;
      },
    },
  ],
  [
    'arrayReduce',
    {
      arity: 3,
      call: (run, [fn, list, initial]) => {
        let result = initial;
        for (const item of each(run, list)) result = callValue(run, [result, item], fn);
        return result;
      },
    },
  ],
  ['arraySort', { arity: 2, call: (run, args) => sortByKey(run, 'arraySort', args) }],
  ['arrayReverseSort', { arity: 2, call: (run, args) => sortByKey(run, 'arrayReverseSort', args) }],
  ['inCohort', { arity: 2, call: (run, [id, ids]) => member(run, 'inCohort', id, ids) }],
  ['notInCohort', { arity: 2, call: (run, [id, ids]) => !member(run, 'notInCohort', id, ids) }],
  [
    'sortableSemver',
    {
      arity: 1,
      call: (run, [version]) => {
        if (compare('==', version, null)) return [];
        const numbers = native(run, 'extractRegex', [version, '(\\d+(\\.\\d+)+)']);
        if (native(run, 'empty', [numbers])) return [];
        const parts = native(run, 'splitByString', ['.', numbers]);
        return (arrayMap(run, [toPart, parts]) as HogValue[]).map((part) => part ?? 0);
      },
    },
  ],
]);
