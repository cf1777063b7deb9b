/** Directories of test runs begin like this, in the directory for temporary files. */
export const STATE_PREFIX = 'sluice-test-run-';
/** In the directory of a run: data directories that tests start servers in. */
export const DATA_DIRS = 'data dirs';
/** The migrated database that test databases are cloned from. */
export const TEMPLATE_DATABASE = 'sluice_template';
