import { type Bytecode, OPERAND_COUNTS, Op } from '../bytecode/index.ts';
import { LOOKING, listChanges, SORTING } from '../runtime/lists.ts';
import { library } from '../runtime/stl.ts';
import { binaryOperations } from './binary.ts';

/**
 * What an instruction that reads a variable does with a list that the variable owns:
 *
 * - `LENT`: the list may be kept somewhere, so it is lent
 * - `BORROWED`: it is only looked at, before any other code runs
 * - `BORROWED_ALONE`: it is only looked at, but other functions run before that. If they can reach the variable, the
 *   list is lent
 *
 * `IN_PLACE` marks the call of a list function whose result goes into the variable that its list was read from.
 * `FRESH` marks the call of a list function whose result goes into another variable.
 */
export const Use = { LENT: 0, BORROWED: 1, BORROWED_ALONE: 2, IN_PLACE: 3, FRESH: 4 } as const;

/** What is known of the instructions of a code, by their index. */
export type Uses = Uint8Array;

/** Functions written in Hog that read their list once, before they call a function of the program. */
const WRITTEN = new Set(['arrayMap', 'arrayFilter', 'arrayExists', 'arrayCount', 'arrayReduce']);

/** How many values are above the followed one after the arguments of a call were taken, if it was the first or second. */
const FIRST = -1;
const SECOND = -2;

/** No expression that changes a list is longer. */
const LONGEST = 200;

const known = new WeakMap<Bytecode, { uses: Uses | null }>();

/** Returns how a code uses its variables. Returns null if it never changes a list. */
export function usesOf(code: Bytecode): Uses | null {
  let found = known.get(code);
  if (!found) {
    found = { uses: analyse(code) };
    known.set(code, found);
  }
  return found.uses;
}

function analyse(code: Bytecode): Uses | null {
  // The older version takes arguments in reverse.
  if (code[0] === '_h') return null;
  if (!code.some((one) => typeof one === 'string' && listChanges.has(one))) return null;
  const uses = new Uint8Array(code.length);
  for (let at = code[0] === '_H' ? 2 : 0; at < code.length; at = next(code, at)) {
    const op = code[at];
    // Declared functions could have the names of library functions.
    if (op === Op.DECLARE_FN) return null;
    if (op === Op.GET_LOCAL || op === Op.GET_UPVALUE) uses[at] = follow(code, at, uses);
    else if (op === Op.CALL_GLOBAL && listChanges.has(String(code[at + 1])) && uses[at] === 0) {
      const after = code[at + 3];
      if (after === Op.SET_LOCAL || after === Op.SET_UPVALUE) uses[at] = Use.FRESH;
    }
  }
  return uses;
}

/** Returns the index of the instruction that stands after this one. Bodies of functions are instructions too. */
function next(code: Bytecode, at: number): number {
  const op = code[at] as number;
  const length = 1 + (OPERAND_COUNTS.get(op) ?? 0);
  return op === Op.CLOSURE ? at + length + 2 * (code[at + 1] as number) : at + length;
}

/** Follows a value from the instruction that puts it on the stack to the one that takes it off. */
function follow(code: Bytecode, from: number, uses: Uses): number {
  /** How many values are above it. */
  let above = 0;
  let alone = false;
  const take = (count: number): boolean => {
    above -= count;
    return above < 0;
  };
  const borrowed = () => (alone ? Use.BORROWED_ALONE : Use.BORROWED);
  for (let at = next(code, from), n = 0; at < code.length && n < LONGEST; at = next(code, at), n++) {
    const op = code[at] as number;
    const operand = code[at + 1] as number;
    if (binaryOperations[op]) {
      if (take(2)) return borrowed();
      above++;
      continue;
    }
    switch (op) {
      case Op.STRING:
      case Op.INTEGER:
      case Op.FLOAT:
      case Op.TRUE:
      case Op.FALSE:
      case Op.NULL:
      case Op.GET_LOCAL:
      case Op.GET_UPVALUE:
        above++;
        break;
      case Op.NOT:
        if (take(1)) return borrowed();
        above++;
        break;
      case Op.AND:
      case Op.OR:
        if (take(operand)) return borrowed();
        above++;
        break;
      case Op.GET_PROPERTY:
      case Op.GET_PROPERTY_NULLISH:
        if (take(2)) return borrowed();
        above++;
        break;
      case Op.POP:
        if (take(1)) return borrowed();
        break;
      case Op.SET_PROPERTY:
        // The object itself may be changed. As a key or a value, the list would be kept.
        if (take(3)) return above === FIRST ? borrowed() : Use.LENT;
        break;
      case Op.GET_GLOBAL:
      case Op.ARRAY:
      case Op.TUPLE:
        if (take(operand)) return Use.LENT;
        above++;
        break;
      case Op.DICT:
        if (take(2 * operand)) return Use.LENT;
        above++;
        break;
      case Op.CALL_LOCAL:
        if (take(operand + 1)) return Use.LENT;
        above++;
        alone = true;
        break;
      case Op.CALL_GLOBAL: {
        const name = String(operand);
        const count = code[at + 2] as number;
        if (take(count)) {
          if (LOOKING.has(name) || (WRITTEN.has(name) && above === SECOND)) return borrowed();
          if (above !== FIRST || !listChanges.has(name)) return Use.LENT;
          if (code[at + 3] === setterOf(code[from]) && code[at + 4] === code[from + 1])
            uses[at] = Use.IN_PLACE;
          return borrowed();
        }
        above++;
        if (!library.has(name) || SORTING.has(name)) alone = true;
        break;
      }
      default:
        return Use.LENT;
    }
  }
  return Use.LENT;
}

const setterOf = (getter: unknown): number => (getter === Op.GET_LOCAL ? Op.SET_LOCAL : Op.SET_UPVALUE);
