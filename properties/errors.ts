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
