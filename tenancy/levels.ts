/** Membership levels of an organization. A level may do everything that a lower one may. */
export const MEMBER = 1;
export const ADMIN = 8;
export const OWNER = 15;

export type Level = typeof MEMBER | typeof ADMIN | typeof OWNER;
