/**
 * The reason why a filter was refused:
 *
 * - `invalid`: the filter makes no sense
 * - `unsupported`: the filter makes sense, but not where it is used (such as cohorts in real time)
 */
export type FilterErrorCode = 'invalid' | 'unsupported';

/** An error in a filter document. `path` is the place in the document, such as `properties.0.value`. */
export class FilterError extends Error {
  override readonly name = 'FilterError';
  readonly code: FilterErrorCode;
  readonly path: string;

  constructor(message: string, path = '', code: FilterErrorCode = 'invalid') {
    super(message);
    this.code = code;
    this.path = path;
  }
}

/** Runs `work` and adds the path to a FilterError that has none. */
export function at<T>(path: string, work: () => T): T {
  try {
    return work();
  } catch (error) {
    if (!(error instanceof FilterError) || error.path !== '') throw error;
    throw new FilterError(error.message, path, error.code);
  }
}
