import type { PlaceTimes } from '../rows/places.ts';

/** How often attempts report, and how long they pause when they failed. Tests make both shorter. */
export interface Rhythm {
  /** Milliseconds between two reports of an attempt. It also learns then that it has to stop. */
  report: number;
  /** Milliseconds before the next attempt, unless the destination asks for a time. Without it, Temporal decides. */
  pause?(attempt: number): number;
  /** Milliseconds without progress before an attempt says what it waits for. */
  wait?: number;
  /** Milliseconds without progress before an attempt counts as standing still. */
  stands?: number;
  /** The rhythm of places of workers. Without it, as usual. */
  places?: Partial<PlaceRhythm>;
}

/** The rhythm of places, in milliseconds. */
export interface PlaceRhythm extends PlaceTimes {
  /** How often a worker says that it lives, and looks for somebody who was not told. */
  announce: number;
  /** How long others believe that a worker lives. */
  alive: number;
  /** The pause before asking again, hoping for another worker. */
  elsewhere: number;
  /** How long a call to Temporal may take. */
  call: number;
}
