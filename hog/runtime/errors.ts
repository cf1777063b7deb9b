/**
 * - `runtime`: the program did something it cannot do (bad argument, null where a value is needed)
 * - `uncaught`: the program threw and nobody caught
 * - `memory`, `time`, `steps`, `depth`: a limit; no program can catch these
 * - `bytecode`: the code is not code
 * - `async`: a call that waits, where nothing may wait, or once too often
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

/** How a run of Hog can fail. */
export class HogFailure extends Error {
  override readonly name = 'HogFailure';
  readonly code: HogErrorCode;
  /** Of an uncaught Hog error: its type and payload. */
  readonly type: string | null;
  readonly payload: unknown;

  constructor(code: HogErrorCode, message: string, type: string | null = null, payload: unknown = null) {
    super(message);
    this.code = code;
    this.type = type;
    this.payload = payload;
  }
}

/** A failure the program could be told of: not a limit, not broken code. */
export const runtimeFailure = (message: string): HogFailure => new HogFailure('runtime', message);

/** Whatever was thrown, as a failure. JavaScript's own errors are faults of the program's values. */
export function asFailure(error: unknown): HogFailure {
  if (error instanceof HogFailure) return error;
  if (error instanceof RangeError && /call stack/i.test(error.message)) {
    return new HogFailure('depth', 'A value or a call is nested too deep');
  }
  if (error instanceof RangeError && /string length|array length|allocation/i.test(error.message)) {
    return new HogFailure('memory', 'Memory limit exceeded: a value would be larger than can be made');
  }
  return runtimeFailure(error instanceof Error ? error.message : String(error));
}
