/** The events of one transaction that somebody follows. */
export interface FollowedEvents {
  projects: readonly number[];
  count: number;
  /** Project, uuid and timestamp of each event in 28 bytes, as hexadecimal digits. */
  keys: string;
  /** About how many bytes the rows of the whole transaction take. */
  bytes: number;
}

/**
 * Learns of events in the transaction that stores them. A product that reacts to events implements it. All it does is SQL
 * of that transaction: so either the events are stored and it knows of them, or neither.
 */
export interface EventFollower {
  /** An expression in SQL: the ids of those of the projects that it follows, as a text with commas. Null: none of them. */
  question(projectIds: readonly number[]): string;
  /** A statement in SQL that notes the events. They are stored right after it. */
  note(events: FollowedEvents): string;
  /** A transaction with noted events is committed. */
  committed(): void;
}
