/** Whether this is `npm run test:long`, which has time for everything. */
export const LONG = process.env.TEST_LONG === '1';

/** How many cases a test goes through: `usual` with `npm test`, `long` with `npm run test:long`. */
export const rounds = (usual: number, long: number): number => (LONG ? long : usual);
