import type { FailureCode } from './reasons.ts';

/** What a flag needs is not known, such as a stored property while the database is away. Only this flag fails. */
export class UnknownValueError extends Error {
  override name = 'UnknownValueError';
  readonly code: FailureCode;

  constructor(code: FailureCode) {
    super(code);
    this.code = code;
  }
}

/** The one for whom flags are evaluated. Each function may throw an `UnknownValueError`. */
export interface Subject {
  distinctId: string;
  /** Empty: the request named none. */
  deviceId: string;
  /** A property of the person. Undefined: there is none. */
  property(key: string): unknown;
  /** The key of the group of a type. Undefined: the request named none. */
  group(index: number): string | undefined;
  /** A property of that group. */
  groupProperty(index: number, key: string): unknown;
  /** Whether the person is in a static cohort. */
  inStatic(cohortId: number): boolean;
  /** The id by which the person is counted to a rollout, if it is not the distinct id. */
  hashKey(flagKey: string): string | undefined;
}
