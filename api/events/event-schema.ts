import { z } from 'zod';
import { parseElementsChain } from '../../capture/elements-chain.ts';
import type { EventRow } from '../../db/events.ts';
import { nextTurn } from '../../db/loop-turns.ts';
import type { PersonOutline } from '../../db/persons.ts';
import { freeForm, timestamp } from '../fields.ts';

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

/** Letters of a page that are written in one go. */
const PIECE = 128 * 1024;

/** A page as JSON, piece by piece. A page may have many megabytes, so others have their turn between the pieces. */
export async function* pageTexts(
  rows: readonly EventRow[],
  persons: ReadonlyMap<string, PersonOutline>,
  next: string | null,
): AsyncGenerator<string> {
  let piece = `{"next":${JSON.stringify(next)},"results":[`;
  for (const [index, row] of rows.entries()) {
    piece += (index === 0 ? '' : ',') + eventText(row, persons.get(row.distinct_id));
    if (piece.length < PIECE) continue;
    yield piece;
    piece = '';
    await nextTurn();
  }
  yield `${piece}]}`;
}
