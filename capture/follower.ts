/** The events of one transaction that somebody follows. */
export interface FollowedEvents {
  projects: readonly number[];
  count: number;
  /** Project, uuid and timestamp of each event in 28 bytes, as hexadecimal digits. */
  keys: string;
}

/**
 * Learns of events in the transaction that stores them. A product that reacts to events implements it. All it does is SQL
 * of that transaction: so either the events are stored and it knows of them, or neither.
 */
export interface EventFollower {
  /** An expression in SQL, whose value is a text, that asks before the events are stored. Null: it follows none of them. */
  question(projectIds: readonly number[]): string;
  /** The projects that it follows, out of the answer. */
  projects(answer: string): ReadonlySet<number>;
  /** A statement in SQL that notes the events. It follows on the one that stores them. */
  note(events: FollowedEvents, answer: string): string;
  /** A transaction with noted events is committed. */
  committed(): void;
}
