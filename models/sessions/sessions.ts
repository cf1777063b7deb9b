import { createSchema, type Rows, sql, type Table } from '../../hog/sql/index.ts';
import type { OpenInterval } from '../../intervals/index.ts';
import { boundsOf, certain } from '../changes.ts';
import { FIRST_EVENT } from '../events/events.ts';
import { fieldsOf, type Model } from '../model.ts';
import { SESSION_COLUMNS } from './columns.ts';

/** The sessions that received an event within the interval. Each row is the whole session as it is now. */
const changedWithin =
  (interval: OpenInterval): Rows =>
  (project, parameters) => {
    const [from, to] = boundsOf(interval, parameters);
    return sql`sessions_changed(${project}::integer, ${from}, ${to})`;
  };

/** The fields of sessions in HogQL, each also by its name in exports, which is without `$`. */
function sessionFields(): Table['fields'] {
  const { sessions: table } = createSchema('on event').tables;
  if (!table) throw new Error('the schema has no sessions');
  const plain = Object.entries(table.fields).map(([name, field]) => [name.replace(/^\$/, ''), field]);
  return {
    ...table.fields,
    ...Object.fromEntries(plain),
    team_id: certain('int', (t) => sql`${t}.team_id`),
    // As in PostHog, never earlier than the end of the session, so that it can stand for the time of the last change.
    _inserted_at: certain('datetime', (t) => sql`greatest(${t}._inserted_at, ${t}.end_timestamp)`),
  };
}

const FIELDS = sessionFields();

/** The sessions that received an event within an interval, whole. */
export const sessions = {
  name: 'sessions',
  row: 'session',
  columns: { files: fieldsOf(SESSION_COLUMNS), tables: fieldsOf(SESSION_COLUMNS) },
  storedTexts: [],
  source: (interval) => ({
    schema: {
      tables: {
        sessions: {
          ...{ name: 'sessions', from: changedWithin(interval), project: sql`team_id` },
          fields: FIELDS,
        },
      },
    },
    where: [],
    settings: {},
  }),
  isOfEvents: false,
  changes: true,
  expires: true,
  firstData: FIRST_EVENT,
  table: {
    keys: [['team_id', 'session_id']],
    // A late event in the middle of a session changes its counts, but not its end.
    newer: { order: ['end_timestamp'], finer: ['_inserted_at'], strictly: false },
    shortTexts: [],
  },
  docs: {
    rows: 'sessions that received an event in the interval, complete',
    order: 'none',
    insertedAt: 'the later one of the last ingestion and the end of the session, as in PostHog',
    fields:
      'the columns above, also by their names in HogQL (`$start_timestamp`, `$pageview_count`), and `$entry_referrer`',
  },
} as const satisfies Model;
