import { listDefinitions, MOST_DEFINITIONS } from '../../db/definitions.ts';
import type { Pool } from '../../db/pool.ts';
import { findProject } from '../../db/projects.ts';
import type { Asker } from '../../db/turns.ts';
import { refuse } from '../../refusals.ts';
import { readPersonValues, readValues } from '../reads/values.ts';
import { shownValue, VALUE_COLUMNS, type ValuesRequest } from '../rules/values.ts';
import { refusing } from './refusing.ts';

export interface ValueDependencies {
  pool: Pool;
  /** Sees the rows of one project at a time. */
  reader: Pool;
}

/** What stands for the names of the project's own events. */
const CUSTOM_EVENT = 'custom_event';

/** Returns some values of a property or a column of events, the shortest first, or the names of all events of the project's own. */
export async function valuesOf(
  { pool, reader }: ValueDependencies,
  asker: Asker,
  request: ValuesRequest,
): Promise<string[]> {
  const { key, isColumn, search } = request;
  if (isColumn && !VALUE_COLUMNS.some((one) => one === key)) {
    const message = `The columns with values are ${VALUE_COLUMNS.join(', ')}.`;
    throw refuse.invalid('key', message, { code: 'invalid_choice' });
  }
  if (key === CUSTOM_EVENT) {
    const { rows } = await listDefinitions(pool, asker.projectId, {
      ...{ kind: 'event', terms: search === '' ? [] : [search], prefix: { text: '$', has: false } },
      ...{ order: 'name', limit: MOST_DEFINITIONS.event, offset: 0 },
    });
    return rows.map((row) => row.name);
  }
  const project = await findProject(pool, asker.projectId);
  if (!project) throw refuse.absent();
  const values = await refusing(() => readValues(reader, asker, request, project.timezone), null);
  return [...new Set(values.map(shownValue))];
}

/** Returns the most frequent values of a property of persons. Lists count by their elements. */
export async function personValuesOf(
  { reader }: Pick<ValueDependencies, 'reader'>,
  asker: Asker,
  request: { key: string; search: string },
): Promise<{ name: string; count: number }[]> {
  const found = await refusing(() => readPersonValues(reader, asker, request), null);
  return found.map((one) => ({ ...one, name: shownValue(one.name) }));
}
