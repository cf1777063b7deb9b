import type { CapturedEvent } from './captured-event.ts';
import type { Actor } from './persons/people.ts';

/** What a follower has found out about an event before its transaction. Only the follower reads it. */
export type Look = object;

/** The events of one transaction that somebody follows. */
export interface FollowedEvents<L> {
  /** The projects of the events, with those that nobody wants. */
  projects: readonly number[];
  count: number;
  /** Project, uuid and timestamp of each event in 28 bytes, as hexadecimal digits. */
  keys: string;
  /** Whether these are all events that are followed. */
  isWhole: boolean;
  /** Looks at the other events: nobody wants them. */
  unwanted: readonly L[];
}

/** What a transaction knows from the answer of Postgres. */
export interface Following<L> {
  follows(projectId: number): boolean;
  /** Answers whether nobody wants an event of this person. */
  isUnwanted(look: L, person: Pick<Actor, 'mode' | 'properties'>): boolean;
  /** A statement in SQL that notes the events. It follows on the one that stores them. Undefined: there is nothing to note. */
  note(events: FollowedEvents<L>): string | undefined;
}

/**
 * Learns of events in the transaction that stores them. A product that reacts to events implements it. All it does is SQL
 * of that transaction: so either the events are stored and it knows of them, or neither.
 */
export interface EventFollower<L extends Look = Look> {
  /** An expression in SQL, whose value is a text, that asks before the events are stored. Null: it follows none of them. */
  question(projectIds: readonly number[]): string;
  /** Looks at an event whose texts are stored as they are. Undefined: it has to see the event later. */
  look(projectId: number, event: CapturedEvent): L | undefined;
  /** Reads the answer. */
  read(answer: string): Following<L>;
  /** A transaction with noted events is committed. */
  committed(): void;
}
