/** The bytes that should be a COPY's are not, or end too early: nothing of what they made may be used. */
export class BrokenRowsError extends Error {
  override readonly name = 'BrokenRowsError';
  /** A cut-off stream may come whole another time; rows that do not fit their columns stay as they are. */
  readonly retryable: boolean;

  constructor(message: string, options: { retryable: boolean }) {
    super(message);
    this.retryable = options.retryable;
  }
}

export const brokenRows = (what: string, retryable: boolean): BrokenRowsError =>
  new BrokenRowsError(`The stream of rows is broken: ${what}.`, { retryable });
