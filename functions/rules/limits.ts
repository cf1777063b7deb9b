/** How many transformations of a project may be enabled at once. Each event passes through all of them. */
export const MOST_TRANSFORMATIONS = 20;
/** How many mappings the enabled functions of a project may have together. */
export const MOST_MAPPINGS = 1_000;
export const LAST_ORDER = 32_767;
export const MAX_HOG_BYTES = 100 * 1024;
/** How many versions of a function are kept. */
export const MOST_REVISIONS = 100;
/** How much JavaScript the enabled site functions of a project may have together. Every visitor loads it. */
export const MOST_SITE_BYTES = 1024 * 1024;
