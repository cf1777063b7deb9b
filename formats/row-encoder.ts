/** What `encodeRows` gives whole rows to. */
export interface RowEncoder {
  /** Encodes the rows between two places in the kernel's memory until it needs something; see `resolve`. */
  encode(at: number, end: number): number;
  /** Does what `encode` ended for, so that it can go on. */
  resolve(status: number): Promise<void>;
  /** After the last row: writes and closes everything. */
  finish(): Promise<void>;
  /** Gives up; files are somebody else's to abort. */
  destroy(): void;
}
