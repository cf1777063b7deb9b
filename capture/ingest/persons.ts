import { createHash } from 'node:crypto';
import type { Transaction } from '../../db/pool.ts';
import type { PendingEvent } from './pending.ts';
import { cleanText } from './text.ts';

/** The person of an event as it is written into the event's row. */
export interface PersonOfEvent {
  /** 16 bytes. */
  id: Uint8Array;
  /** JSON text. */
  properties: string;
  mode: 'full' | 'propertyless';
  /** Keys of the event's groups by the index of their type; absent: the event has none. */
  groups?: readonly (string | null)[];
}

/**
 * The place where persons and groups join in: called once for each transaction, after the new events are known and
 * before their rows are written, with the client of that transaction. One answer for each event, in their order.
 */
export type ResolvePersons = (
  client: Transaction,
  events: readonly PendingEvent[],
) => readonly PersonOfEvent[] | Promise<readonly PersonOfEvent[]>;

const NAMESPACE = Buffer.from('932979b465c3442484670b66ec27bc22', 'hex');
const NO_PROPERTIES = '{}';

/** The id of the person of a distinct_id that no person row is known for: a uuid of version 5, the same everywhere. */
export function personlessId(projectId: number, distinctId: string): Uint8Array {
  const digest = createHash('sha1').update(NAMESPACE).update(`${projectId}:${distinctId}`).digest();
  digest[6] = ((digest[6] as number) & 0x0f) | 0x50;
  digest[8] = ((digest[8] as number) & 0x3f) | 0x80;
  return digest.subarray(0, 16);
}

/** As many ids as are kept at hand, so that a busy person is hashed once. */
const REMEMBERED = 20_000;

/**
 * The rule for events of persons that have no row: the id follows from project and distinct_id, the properties are
 * empty. Whoever becomes a person later has this very id at first, so that nothing needs rewriting.
 */
export function createPersonlessRule(): ResolvePersons {
  let ids = new Map<string, Uint8Array>();
  const idOf = (projectId: number, distinctId: string) => {
    const key = `${projectId}:${distinctId}`;
    const known = ids.get(key);
    if (known) return known;
    if (ids.size >= REMEMBERED) ids = new Map();
    const id = personlessId(projectId, distinctId);
    ids.set(key, id);
    return id;
  };
  return (_client, events) =>
    events.map(({ projectId, event }) => ({
      id: idOf(projectId, cleanText(event.distinct_id)),
      properties: NO_PROPERTIES,
      mode: event.properties.$process_person_profile === false ? 'propertyless' : 'full',
    }));
}
