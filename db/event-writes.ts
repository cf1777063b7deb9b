import { copyIn, type Feed } from './copy-in.ts';
import type { FollowUp } from './follow-up.ts';
import { STAMP_SQL } from './horizon.ts';
import { nextTurn } from './loop-turns.ts';
import type { Transaction } from './pool.ts';
import { timestamptzText } from './timestamptz.ts';

/** The columns of the rows that `writeEventsAndCommit` takes, first those that are known before its transaction. */
export const EVENT_ROW_COLUMNS = [
  ...['project_id', 'uuid', 'timestamp', 'created_at', 'historical', 'event', 'distinct_id', 'properties'],
  ...['session_id', 'window_id', 'elements_chain', 'transformations'],
  ...['inserted_at', 'person_id', 'person_mode', 'person_properties'],
  ...['group_0', 'group_1', 'group_2', 'group_3', 'group_4'],
];
/** The columns of the rows that `openWithNewIds` takes: the first of EVENT_ROW_COLUMNS. */
export const ID_COLUMNS = ['project_id', 'uuid', 'timestamp'];

const COPY_IDS = `copy event_ids (${ID_COLUMNS.join(', ')}) from stdin (format binary)`;
const COPY_EVENTS = `copy events (${EVENT_ROW_COLUMNS.join(', ')}) from stdin (format binary)`;
/** The second one comes from the trigger of event_ids, for an id that is sealed. */
const KNOWN_ID = ['23505', '40001'];

/** How a transaction that stores events begins. */
export interface Opened {
  /** Its inserted_at, in the 8 bytes of a `timestamptz`. */
  stamp: Buffer;
  /** The answer to what was asked. */
  answer: string | null;
}

function opened([stamp, answer = null]: readonly (string | null)[] = []): Opened {
  const bytes = Buffer.alloc(8);
  bytes.writeBigInt64BE(BigInt(stamp as string));
  return { stamp: bytes, answer };
}

/**
 * Postgres plans each of the statements of such a transaction once for a connection, and not for each number of rows again: all of
 * them find their rows by keys.
 */
const PLAN_ONCE = 'set local plan_cache_mode = force_generic_plan';

/** `question` is an expression whose value is a text. It is asked after the lock was granted. */
const openingSql = (question: string | undefined) =>
  question === undefined ? STAMP_SQL : `${STAMP_SQL}, (${question}) as answer`;

/**
 * Opens a transaction that stores events, and inserts their ids. It assumes that all ids are new, because a COPY costs
 * half of `insert … on conflict`. `next` is sent along.
 */
export async function openWithNewIds(
  client: Transaction,
  ids: Feed,
  { next, question }: { next?: FollowUp<unknown> | undefined; question?: string | undefined } = {},
): Promise<Opened> {
  const rows = await copyIn(client, `begin; ${PLAN_ONCE}; ${openingSql(question)}; ${COPY_IDS}`, ids, next);
  return opened(rows.at(-1));
}

/**
 * Returns whether an error says that an id was not new: it was known, or another transaction inserted it at the same
 * time.
 */
export function isKnownId(error: unknown): boolean {
  const { code, table } = error as { code?: string; table?: string };
  return KNOWN_ID.includes(code as string) && table === 'event_ids';
}

export interface EventId {
  projectId: number;
  uuid: string;
  /** Milliseconds. */
  timestamp: number;
}

/** So many ids go into one statement. */
const IDS_AT_ONCE = 2_000;

/**
 * Opens a transaction that stores events, some of which may be known, and inserts their ids. They are in the order of their
 * keys, which keeps two transactions with the same ids from waiting for each other in a circle. Returns the keys of the new
 * ones. If an id moves to the sealed ones meanwhile, Postgres ends the transaction, and it can be repeated.
 */
export async function openWithSomeNewIds<T>(
  client: Transaction,
  events: readonly T[],
  idOf: (event: T) => EventId,
  question?: string,
): Promise<Opened & { fresh: Set<string> }> {
  await client.query(`begin; ${PLAN_ONCE}`);
  // The text contains two statements, so node-postgres returns a list of results.
  const [, asked] = (await client.query(openingSql(question))) as unknown as {
    rows: { stamp: string; answer?: string | null }[];
  }[];
  const { stamp, answer } = asked?.rows[0] ?? {};
  const fresh = new Set<string>();
  for (let from = 0; from < events.length; from += IDS_AT_ONCE) {
    if (from > 0) await nextTurn();
    const ids = events.slice(from, from + IDS_AT_ONCE).map(idOf);
    const { rows } = await client.query(
      `insert into event_ids (project_id, uuid, timestamp)
       select project_id, uuid, timestamp
       from unnest($1::int[], $2::uuid[], $3::timestamptz[]) with ordinality as new (project_id, uuid, timestamp, place)
       where place not in (select place from sealed_event_ids($1, $2))
       order by project_id, uuid
       on conflict do nothing returning project_id, uuid`,
      [
        ids.map((id) => id.projectId),
        ids.map((id) => id.uuid),
        ids.map((id) => timestamptzText(id.timestamp)),
      ],
    );
    for (const row of rows) fresh.add(`${row.project_id}:${row.uuid}`);
  }
  return { ...opened([stamp ?? null, answer ?? null]), fresh };
}

/** Stores the events and commits. `note` is a statement that is carried out between the two. */
export async function writeEventsAndCommit(client: Transaction, events: Feed, note?: string): Promise<void> {
  await copyIn(client, `${COPY_EVENTS}; ${note === undefined ? '' : `${note}; `}commit`, events);
}
