/** What everybody reads in place of an encrypted payload: JSON, quotes included. Sent back, it keeps the payload. */
export const ENCRYPTED_MARK = '"********* (encrypted)"';

export const isEncryptedMark = (payload: unknown): boolean =>
  payload === ENCRYPTED_MARK || payload === ENCRYPTED_MARK.slice(1, -1);
