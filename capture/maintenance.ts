import { sealEventIds } from '../db/event-id-sealing.ts';
import { type DropHooks, dropExpiredEvents, ensureEventPartitions } from '../db/event-partitions.ts';
import { sealEventWeeks, summarizeOpenWeeks } from '../db/event-weeks.ts';
import { deleteSomeIngestionWarnings } from '../db/ingestion-warnings.ts';
import { readPersonWords } from '../db/person-words.ts';
import type { Pool } from '../db/pool.ts';
import { noteIngestedEvents } from '../db/projects.ts';
import type { MaintenanceStep } from '../tenancy/product.ts';
import { carryCopied } from './carry.ts';

/** How many weeks ahead partitions are made. If maintenance stops for longer, events go to the default partition. */
const WEEKS_AHEAD = 4;
/** How many days ingestion warnings are kept. */
const WARNING_DAYS = 90;
const ROWS_PER_STATEMENT = 5_000;
const ROWS_PER_RUN = 500_000;
const HOUR = 3_600_000;
const DAY = 24 * HOUR;

export interface CaptureUpkeep {
  pool: Pool;
  /** Days after which stored events are deleted. Undefined: never. */
  eventRetentionDays: number | undefined;
  /** Who is asked and told when events are dropped. */
  eventDrops: DropHooks;
}

const keepEventPartitions: MaintenanceStep<CaptureUpkeep> = {
  name: 'keepEventPartitions',
  summary: 'partitions changed',
  /** Makes the next partitions of events, and drops those that are past their retention. */
  async run({ pool, eventRetentionDays, eventDrops }) {
    const now = new Date();
    const made = await ensureEventPartitions(pool, now, WEEKS_AHEAD);
    if (eventRetentionDays === undefined) return made;
    return made + (await dropExpiredEvents(pool, now, eventRetentionDays, eventDrops));
  },
};

const summarizeEvents: MaintenanceStep<CaptureUpkeep> = {
  name: 'summarizeEvents',
  summary: 'ranges of new events read',
  /** Tells the indexes of open weeks what was stored since the last minute. */
  run: ({ pool }, work) => summarizeOpenWeeks(pool, work),
};

const sealEvents: MaintenanceStep<CaptureUpkeep> = {
  name: 'sealEvents',
  summary: 'weeks of events sealed',
  longestMilliseconds: HOUR,
  /** Gives weeks that are over the indexes that would cost ingestion too much. */
  run: ({ pool }, work) => sealEventWeeks(pool, work),
};

const sealIds: MaintenanceStep<CaptureUpkeep> = {
  name: 'sealEventIds',
  summary: 'ids of events sealed',
  longestMilliseconds: HOUR,
  /** Keeps the table of ids small, and the filters of the sealed ones complete. */
  run: ({ pool }, work) => sealEventIds(pool, work),
};

const expireIngestionWarnings: MaintenanceStep<CaptureUpkeep> = {
  name: 'expireIngestionWarnings',
  summary: 'warnings expired',
  /** Deletes old ingestion warnings, in small statements. */
  async run({ pool }, { signal, beat }) {
    const firstKept = new Date(Date.now() - WARNING_DAYS * DAY).toISOString().slice(0, 10);
    let deleted = 0;
    while (deleted < ROWS_PER_RUN) {
      signal.throwIfAborted();
      beat();
      const some = await deleteSomeIngestionWarnings(pool, firstKept, ROWS_PER_STATEMENT);
      if (some === 0) break;
      deleted += some;
    }
    return deleted;
  },
};

const carryProperties: MaintenanceStep<CaptureUpkeep> = {
  name: 'carryProperties',
  summary: 'persons got the latest copied properties',
  // Which events are new is known to an index by then.
  after: 'summarizeEvents',
  longestMilliseconds: HOUR,
  /** Carries what is copied from events into their persons, so that ingestion need not. */
  run: ({ pool }, work) => carryCopied(pool, work),
};

const readNames: MaintenanceStep<CaptureUpkeep> = {
  name: 'readPersonWords',
  summary: 'changed persons read for the search',
  longestMilliseconds: HOUR,
  /** Reads the words of names of changed persons, so that ingestion need not. */
  run: ({ pool }, work) => readPersonWords(pool, work),
};

const noteFirstEvents: MaintenanceStep<CaptureUpkeep> = {
  name: 'noteFirstEvents',
  summary: 'projects got their first event',
  /** Tells projects that they have had an event. */
  run: ({ pool }) => noteIngestedEvents(pool),
};

export const CAPTURE_STEPS = [
  ...[keepEventPartitions, summarizeEvents, sealEvents, sealIds, expireIngestionWarnings],
  ...[carryProperties, readNames, noteFirstEvents],
];
