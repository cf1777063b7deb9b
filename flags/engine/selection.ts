import { inOnePiece } from '../../values/ascii-json.ts';
import type { CompiledFlag } from './compile.ts';
import type { Outcome } from './outcome.ts';

/** The flags that a request asks for. */
export interface Selection {
  flags: readonly CompiledFlag[];
  /** What those are that are the same for everybody. */
  constant: readonly Outcome[];
  /** The details of these as a part of the answer: `"key":{…},"key":{…}`. */
  constantDetails: string;
  /** The other flags. */
  varying: readonly CompiledFlag[];
}

/** A selection for one request. Nothing of it is written ahead. */
export const selectionOf = (flags: readonly CompiledFlag[]): Selection => ({
  ...{ flags, constant: [], constantDetails: '', varying: flags },
});

/** A selection for many requests. What is the same for everybody is written once. */
export function preparedSelection(flags: readonly CompiledFlag[]): Selection {
  const constant = flags.flatMap((flag) => flag.constant ?? []);
  return {
    ...{ flags, constant, varying: flags.filter((flag) => flag.constant === null) },
    constantDetails: inOnePiece(constant.map((one) => one.detail).join(',')),
  };
}
