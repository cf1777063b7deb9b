import { hashRows } from '../../exports/runs/source.ts';
import { createParser } from '../../hog/parser/index.ts';
import { modelQuery } from '../../models/index.ts';
import { DAY, NOW } from '../event-queries/dataset.ts';
import { uuidOf } from '../event-queries/few.ts';
import type { Installation } from './installation.ts';

/** Reads something, and says how many rows it found. */
type Read = () => Promise<number>;

export interface Readings {
  /** Each prepares a reading of something else than the last one. */
  all: Record<string, () => Promise<Read>>;
  prepare(name: string): Promise<Read>;
  close(): Promise<void>;
}

const MINUTE = 60_000;
/** Whatever is read of a range of times is read of the days that the young installation has too. */
const DAYS = 6;

/** What is read of an installation, by the API of a port and as a worker does it. */
export function createReadings(
  { pool, projectId, key, people, weeks }: Installation,
  port: number,
): Readings {
  const parser = createParser();
  const { signal } = new AbortController();
  const get = (path: string, count: (body: Record<string, unknown[]>) => number | undefined): Read => {
    return async () => {
      const answer = await fetch(`http://127.0.0.1:${port}/api/projects/${projectId}/${path}`, {
        headers: { authorization: `Bearer ${key}` },
      });
      if (answer.status !== 200) throw new Error(`${path}: ${answer.status} ${await answer.text()}`);
      return count((await answer.json()) as Record<string, unknown[]>) ?? 0;
    };
  };
  const results = (path: string) => get(path, (body) => body.results?.length);
  const one = (path: string) => get(path, (body) => (body.id === undefined ? 0 : 1));
  const anybody = () => Math.floor(Math.random() * people);
  const any = (length: number) => NOW - length - Math.random() * (DAYS * DAY - length);
  const iso = (at: number) => new Date(at).toISOString();

  const all: Readings['all'] = {
    'the newest 100 events': async () => results('events/?limit=100'),
    'the newest 100 of a day': async () => {
      const from = any(DAY);
      return results(`events/?limit=100&after=${iso(from)}&before=${iso(from + DAY)}`);
    },
    "a person's newest events": async () => results(`events/?limit=100&person_id=${uuidOf(anybody())}`),
    'events of a distinct id': async () => results(`events/?limit=100&distinct_id=user-${anybody()}`),
    'one event by its id': async () => {
      const { rows } = await pool.query(
        `select uuid from events where project_id = $1 and inserted_at >= $2 order by inserted_at limit 1`,
        [projectId, iso(NOW - Math.random() * (weeks * 7 - 7) * DAY)],
      );
      return one(`events/${rows[0].uuid}/`);
    },
    'a person by id': async () => one(`persons/${uuidOf(anybody())}/`),
    'a person by distinct id': async () => results(`persons/?distinct_id=user-${anybody()}`),
    'persons by a word': async () => results(`persons/?search=user-${anybody()}@example.com`),
    'the first 100 persons': async () => results('persons/?limit=100'),
    'an export of five minutes, also what `verify` reads': async () => {
      const start = Math.floor(any(5 * MINUTE) / MINUTE) * MINUTE;
      const query = await modelQuery(parser, {
        ...{ model: 'events', projectId, columnSet: 'files', timezone: 'UTC' },
        interval: { start, end: start + 5 * MINUTE },
      });
      return async () => (await hashRows(pool, query, signal)).rows;
    },
  };
  return {
    all,
    prepare: (name) => (all[name] as () => Promise<Read>)(),
    close: () => parser.close(),
  };
}
