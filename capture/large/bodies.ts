import { deserialize } from 'node:v8';
import { nextTurn } from '../../db/loop-turns.ts';
import { type Failure, ThreadError, ThreadPool } from '../../hog/threads/pool.ts';
import type { CapturedEvent } from '../captured-event.ts';
import { DecodeError } from '../decode/limits.ts';
import { EventsRefusedError, IngestUnavailableError } from '../ingest/errors.ts';
import type { PreparedEvents } from '../ingest/event-row.ts';
import { InconsistentTokensError } from '../parse/envelope.ts';
import { HistoricalMigrationError } from '../parse/historical.ts';
import { Notices } from '../parse/notices.ts';
import { NoEventError } from '../parse/parse.ts';
import type {
  BodyEvents,
  BodyRows,
  EventsJob,
  LargeAnswer,
  LargeJob,
  Opened,
  OpenJob,
  RowsJob,
} from './jobs.ts';
import { unpack } from './rows.ts';

/** One works for a project, so that others find one that is soon free. */
const THREADS = 2;
/** More bodies are not in memory at once. */
const MOST_WAITING = 64;
/** A body of the largest size takes a part of a second where a processor is free, and much longer where none is. */
const PATIENCE = 60_000;
const RETRY_SECONDS = 5;
/** After so many milliseconds without a large body, the threads end and give back their memory. */
const IDLE = 10_000;

/** What parsing needs to know of a body whose project was found. */
type Task = Pick<RowsJob, 'context' | 'project'>;

interface About {
  given: readonly string[];
  notices: Notices;
}

/**
 * Decodes and parses large bodies in threads with a low priority. On the thread that serves requests, one body of the
 * largest size would hold up all others for more than a tenth of a second.
 */
export interface LargeBodies {
  /** Finds the JSON of a body and its project key. Copies the body at once. Throws what decoding throws. */
  open(body: Omit<OpenJob, 'kind' | 'bytes'> & { bytes: Buffer }): Promise<Opened>;
  /** Makes the rows of the body's events. Takes the memory of the JSON. Throws what parsing throws. */
  rows(opened: Opened, task: Task): Promise<About & { prepared: PreparedEvents }>;
  /** The events themselves, where something on this thread changes them. Takes the memory, and throws the same. */
  events(opened: Opened, task: Task): Promise<About & { events: CapturedEvent[] }>;
  close(): Promise<void>;
}

const KNOWN_ERRORS = { DecodeError, HistoricalMigrationError, InconsistentTokensError, EventsRefusedError };

/** Restores an error of a thread. */
function restored({ name, message, ...fields }: Failure): Error {
  if (name === 'DecodeError' && fields.reason === 'no_event') return new NoEventError(fields.token);
  const error = new Error(message);
  const known = KNOWN_ERRORS[name as keyof typeof KNOWN_ERRORS];
  if (known) Object.setPrototypeOf(error, known.prototype);
  return Object.assign(error, fields, { name });
}

function translated({ code, failure }: ThreadError): Error {
  if (failure) return restored(failure);
  if (code === 'lost') {
    const message = 'failed to parse request: its values take more memory than a request may take';
    return new DecodeError('body_too_large', message, 413);
  }
  return new IngestUnavailableError('Too many large requests at once. Send it again.', RETRY_SECONDS);
}

export function createLargeBodies({ geoip }: { geoip?: string | undefined } = {}): LargeBodies {
  const pool = new ThreadPool<LargeJob, LargeAnswer>({
    entry: new URL('./thread.ts', import.meta.url),
    threads: THREADS,
    maxWaiting: MOST_WAITING,
  });
  let idle: NodeJS.Timeout | undefined;
  async function run(job: LargeJob, transfer: ArrayBuffer, owner?: string): Promise<LargeAnswer> {
    clearTimeout(idle);
    try {
      return await pool.run(job, { limitMs: PATIENCE, usedMs: 0 }, owner, undefined, [transfer]);
    } catch (error) {
      throw error instanceof ThreadError ? translated(error) : error;
    } finally {
      clearTimeout(idle);
      idle = setTimeout(() => pool.rest(), IDLE).unref();
    }
  }
  return {
    async open(body) {
      const bytes = new Uint8Array(body.bytes);
      return (await run({ ...body, kind: 'open', bytes }, bytes.buffer)) as Opened;
    },
    async rows({ json, formToken }, { context, project }) {
      const job: RowsJob = { kind: 'rows', json, formToken, context, project, geoip };
      const { rows, given, notices } = (await run(job, json.buffer, String(project.id))) as BodyRows;
      const prepared = await unpack(rows, project.id, context.now);
      return { given, prepared, notices: Notices.from(notices) };
    },
    async events({ json, formToken }, { context, project }) {
      const job: EventsJob = { kind: 'events', json, formToken, context, project };
      const { slices, given, notices } = (await run(job, json.buffer, String(project.id))) as BodyEvents;
      const events: CapturedEvent[] = [];
      for (const slice of slices) {
        await nextTurn();
        events.push(...(deserialize(new Uint8Array(slice)) as CapturedEvent[]));
      }
      return { given, events, notices: Notices.from(notices) };
    },
    close() {
      clearTimeout(idle);
      return pool.close();
    },
  };
}
