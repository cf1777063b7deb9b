// What a stream of events says, as server-sent events.
import type { EventRow } from '../../../db/events.ts';
import type { StoredPlace } from '../../../queries/reads/stored.ts';
import { eventText } from '../event-schema.ts';

/** Milliseconds after which a client that lost its stream connects again. */
const RETRY = 1_000;

/** A place as clients know it: `2026-01-31T12:00:00.123456Z/<uuid>`. */
const PLACE =
  /^([2-9]\d{3}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,6})?Z)\/([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})$/i;

const idOf = ({ at, uuid }: StoredPlace): string => `${at}/${uuid}`;

/** Reads the place that a client names. Undefined: it names none. */
export function placeIn(text: string): StoredPlace | undefined {
  const [, at, uuid] = PLACE.exec(text.trim()) ?? [];
  if (at === undefined || uuid === undefined || Number.isNaN(Date.parse(at))) return undefined;
  return { at, uuid: uuid.toLowerCase() };
}

/** The order of places. Instants are texts of UTC, so that they keep their microseconds. */
const orderOf = ({ at, uuid }: StoredPlace): string => {
  const [second, fraction = ''] = at.slice(0, -1).split('.');
  return `${second}.${fraction.padEnd(6, '0')}/${uuid}`;
};

/** Answers whether a place comes behind another one. */
export const isBehind = (place: StoredPlace, other: StoredPlace): boolean => orderOf(place) > orderOf(other);

const message = (...lines: string[]): Buffer => Buffer.from(`${lines.join('\n')}\n\n`);

/** The beginning of a stream. Whoever loses it before the first event comes back to this place. */
export const greeting = (place: StoredPlace): Buffer => message(`retry: ${RETRY}`, `id: ${idOf(place)}`);

/** An event. Line breaks can stand between the values of its properties only, where they mean nothing. */
export const eventMessage = (row: EventRow, place: StoredPlace): Buffer =>
  message(`id: ${idOf(place)}`, `data: ${eventText(row, undefined).replaceAll(/[\r\n]/g, ' ')}`);

/** What was left out of a stream. */
export interface Skipped {
  /** How many events. Null: that is not known. */
  events: number | null;
  /** Why, if it is not that the client or the reader was behind. */
  reason: string | null;
}

export const skippedMessage = (skipped: Skipped, place: StoredPlace): Buffer =>
  message(`id: ${idOf(place)}`, 'event: skipped', `data: ${JSON.stringify(skipped)}`);

/** Shows that the connection works, and up to where nothing happened. It is no message for the client. */
export const heartbeat = (place: StoredPlace): Buffer => message(':', `id: ${idOf(place)}`);
