/**
 * - `invalid`: the filter says something that cannot be meant
 * - `unsupported`: it can be meant, but not where it is used (cohorts in real time, for instance)
 */
export type FilterErrorCode = 'invalid' | 'unsupported';

/** A fault of a filter document. `path` says where in the document: `properties.0.value`. */
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

/** What `work` finds wrong, at this place of the document if it names none itself. */
export function at<T>(path: string, work: () => T): T {
  try {
    return work();
  } catch (error) {
    if (!(error instanceof FilterError) || error.path !== '') throw error;
    throw new FilterError(error.message, path, error.code);
  }
}
