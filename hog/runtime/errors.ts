/**
 * The reason why a run failed:
 *
 * - `runtime`: the program made an invalid operation (bad argument, null where a value is needed)
 * - `uncaught`: the program threw an error and did not catch it
 * - `memory`, `time`, `steps`, `depth`: the run exceeded a limit; programs cannot catch these
 * - `bytecode`: the bytecode is not valid
 * - `async`: an async call where none is allowed, or one call too many
 */
export type HogErrorCode =
  | 'runtime'
  | 'uncaught'
  | 'memory'
  | 'time'
  | 'steps'
  | 'depth'
  | 'bytecode'
  | 'async';

/** The failure of a run of Hog. */
export class HogFailure extends Error {
  override readonly name = 'HogFailure';
  readonly code: HogErrorCode;
  /** The type of an uncaught Hog error. Null for other failures. */
  readonly type: string | null;
  readonly payload: unknown;

  constructor(code: HogErrorCode, message: string, type: string | null = null, payload: unknown = null) {
    super(message);
    this.code = code;
    this.type = type;
    this.payload = payload;
  }
}

/** Creates a failure of the program itself: not an exceeded limit, not invalid bytecode. */
export const runtimeFailure = (message: string): HogFailure => new HogFailure('runtime', message);

/** Converts anything that was thrown to a failure. JavaScript's own errors are caused by the values of the program. */
export function asFailure(error: unknown): HogFailure {
  if (error instanceof HogFailure) return error;
  if (error instanceof RangeError && /call stack/i.test(error.message)) {
    return new HogFailure('depth', 'A value or a call is nested too deep');
  }
  if (error instanceof RangeError && /string length|array length|allocation/i.test(error.message)) {
    return new HogFailure('memory', 'Memory limit exceeded: the value is too large to create');
  }
  return runtimeFailure(error instanceof Error ? error.message : String(error));
}
