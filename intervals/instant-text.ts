/** An instant as answers, logs and Temporal have it: in UTC, without a fraction where there is none. */
export const instantText = (instant: number | string): string =>
  new Date(instant).toISOString().replace('.000Z', 'Z');
