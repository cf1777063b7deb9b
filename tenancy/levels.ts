/** Membership levels of an organization; a higher number may do all that a lower one may. */
export const MEMBER = 1;
export const ADMIN = 8;
export const OWNER = 15;

export type Level = typeof MEMBER | typeof ADMIN | typeof OWNER;
