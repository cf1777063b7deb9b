/** What a project and its cohorts may have at most. */
export const COHORT_LIMITS = {
  cohorts: 1_000,
  /** Bytes of the filters of a cohort as JSON. */
  bytes: 500_000,
  nameCharacters: 400,
  descriptionCharacters: 10_000,
  /** Persons that one request adds. */
  added: 10_000,
  /** Persons that a file names, and its bytes. */
  uploaded: 200_000,
  uploadBytes: 8 * 1024 * 1024,
} as const;
