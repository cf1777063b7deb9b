import type { Transaction } from './pool.ts';

/** So many pages of a partition are one range of the index `search`. */
export const RANGE_PAGES = 64;

export interface WeekIndex {
  /** The end of its name, after that of the partition. */
  name: string;
  of: string;
}

/**
 * Finds what few pages have, in a hundredth of the table's size: for each range of pages, which names, distinct ids and persons
 * may be there. Ingestion does not fill it. `summarizeOpenWeeks` does.
 */
export const SEARCH: WeekIndex = {
  name: 'search',
  of: `using brin (event text_bloom_ops (n_distinct_per_range = 100),
    distinct_id text_bloom_ops (n_distinct_per_range = 1500),
    person_id uuid_bloom_ops (n_distinct_per_range = 1500)) with (pages_per_range = ${RANGE_PAGES})`,
};

/** The indexes of a week that gets no more events. In an open one, they would cost ingestion a third of its rate. */
export const SEALED: readonly WeekIndex[] = [
  SEARCH,
  { name: 'event', of: '(project_id, event, timestamp)' },
  { name: 'distinct_id', of: '(project_id, distinct_id, timestamp)' },
  // Alone, it takes half of the room: each person is there once, however many events they have.
  { name: 'person_id', of: '(person_id)' },
];

/** Makes the index of an open week, which is empty yet. */
export async function makeSearchIndex(client: Transaction, partition: string): Promise<void> {
  await client.query(`create index ${partition}_${SEARCH.name} on ${partition} ${SEARCH.of}`);
}
