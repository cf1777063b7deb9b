import { z } from 'zod';
import { parseElementsChain } from '../../capture/elements-chain.ts';
import type { EventRow } from '../../db/events.ts';
import type { PersonOutline } from '../../db/persons.ts';
import { freeForm, timestamp } from '../fields.ts';
import { listInPieces } from '../pieces.ts';

const personOfEvent = z.object({
  is_identified: z.boolean(),
  distinct_ids: z.array(z.string()).meta({ description: 'One distinct id of the person.' }),
  properties: freeForm.meta({
    description: 'The email, name and username of the person, if they are known.',
  }),
});

export const eventRecord = z
  .object({
    id: z.string().meta({ description: 'The uuid of the event.' }),
    distinct_id: z.string(),
    properties: freeForm,
    event: z.string(),
    timestamp,
    person: personOfEvent.nullable().meta({
      description:
        'The person that the distinct_id belongs to now. Null if there is none, or without `include_person`.',
    }),
    elements: z.array(freeForm),
    elements_chain: z.string(),
  })
  .meta({ id: 'Event' });

export const eventPage = z.object({ next: z.string().nullable(), results: z.array(eventRecord) });

/** Formats a time as the events API always has: `2024-01-02T03:04:05.123456+00:00`. */
export const eventTime = (iso: string) => iso.replace(/Z$/, '+00:00');

/** Everything but the properties, which are JSON already. */
type Outline = Omit<z.output<typeof eventRecord>, 'properties'>;

/** An event as JSON. */
export function eventText(row: EventRow, person: PersonOutline | undefined): string {
  const outline: Outline = {
    id: row.uuid,
    distinct_id: row.distinct_id,
    event: row.event,
    timestamp: eventTime(row.timestamp),
    person: person ?? null,
    elements: parseElementsChain(row.elements_chain) as unknown as Record<string, unknown>[],
    elements_chain: row.elements_chain,
  };
  return `${JSON.stringify(outline).slice(0, -1)},"properties":${row.properties}}`;
}

/** An event as an object, as `eventText` writes it. */
export const eventOf = (row: EventRow, person: PersonOutline | undefined): unknown =>
  JSON.parse(eventText(row, person));

/** A page as JSON, piece by piece. */
export const pageTexts = (
  rows: readonly EventRow[],
  persons: ReadonlyMap<string, PersonOutline>,
  next: string | null,
): AsyncGenerator<string> =>
  listInPieces(`{"next":${JSON.stringify(next)},"results":[`, rows, (row) =>
    eventText(row, persons.get(row.distinct_id)),
  );
