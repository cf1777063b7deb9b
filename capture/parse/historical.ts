import { parseIso } from './timestamp.ts';

/** Imported events must be at least this old. */
const LEAST_AGE_HOURS = 48;
/** Earlier times cannot be stored. */
const FIRST_YEAR = Date.parse('0000-01-01T00:00:00Z');
/** How many offences the answer lists, and how many its message shows. */
const LISTED = 100;
const SHOWN = 3;

export interface HistoricalOffence {
  index: number;
  reason: string;
}

function timestampOffence(timestamp: unknown, now: number): string | undefined {
  if (timestamp === undefined || timestamp === null || timestamp === '') return 'timestamp is missing';
  const shown = JSON.stringify(timestamp)?.slice(0, 60);
  const moment = typeof timestamp === 'string' ? parseIso(timestamp.trim()) : Number.NaN;
  if (Number.isNaN(moment)) return `timestamp ${shown} is not ISO 8601`;
  if (moment < FIRST_YEAR) return `timestamp ${shown} is before the year 0`;
  if (moment > now - LEAST_AGE_HOURS * 3_600_000) {
    return `timestamp ${shown} is less than ${LEAST_AGE_HOURS} hours old`;
  }
  return undefined;
}

/** All reasons why an event may not be part of a historical migration. Undefined if it may. */
export function historicalOffence(
  timestamp: unknown,
  hasDistinctId: boolean,
  now: number,
): string | undefined {
  const offence = timestampOffence(timestamp, now);
  if (hasDistinctId) return offence;
  const missing = 'distinct_id is missing or empty';
  return offence === undefined ? missing : `${missing}, ${offence}`;
}

/** The batch of a historical migration breaks the rules. None of it is stored. */
export class HistoricalMigrationError extends Error {
  override name = 'HistoricalMigrationError';
  /** The first offences, in the order of the batch. */
  readonly offences: readonly HistoricalOffence[];
  /** The project key of the request. It must be checked before the offences are shown. */
  readonly token: unknown;

  constructor(offences: readonly HistoricalOffence[], total: number, events: number, token: unknown) {
    const some = offences
      .slice(0, SHOWN)
      .map((one) => `batch[${one.index}]: ${one.reason}`)
      .join('; ');
    const listed = total > offences.length ? ` The first ${offences.length} of them are in "errors".` : '';
    super(
      `historical_migration: ${total} of ${events} events ${total === 1 ? 'breaks' : 'break'} its rules, nothing was ` +
        `stored. Each event needs a distinct_id and an ISO 8601 timestamp at least ${LEAST_AGE_HOURS} hours old. ` +
        `${some}${total > SHOWN ? '; …' : ''}${listed}`,
    );
    this.offences = offences;
    this.token = token;
  }
}

/** Collects the first offences of a batch. A list of all could be as large as the batch. */
export class HistoricalCheck {
  readonly #offences: HistoricalOffence[] = [];
  #total = 0;

  note(index: number, reason: string): void {
    this.#total += 1;
    if (this.#offences.length < LISTED) this.#offences.push({ index, reason });
  }

  finish(events: number, token: unknown): void {
    if (this.#total > 0) throw new HistoricalMigrationError(this.#offences, this.#total, events, token);
  }
}
