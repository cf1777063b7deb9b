import type { Pool } from '../../db/pool.ts';
import { transaction } from '../../db/pool.ts';
import { isStatementTimeout } from '../../db/reading.ts';
import { ofProject } from '../../db/roles/project-setting.ts';
import type { BatchExportRow } from './batch-exports.ts';

const WEEK = 7 * 86_400_000;
/** No event was stored before this instant, because no installation is as old. */
const EARLIEST = Date.UTC(2020, 0, 1);

/**
 * Finds when the first row of a model was stored within [start, end). Null: none was. Events are searched week by week,
 * as they are partitioned. A search that takes too long returns the beginning of the time that it searched: the result
 * may be too early, but never too late.
 */
export async function firstDataWithin(
  pool: Pool,
  { project_id, model }: Pick<BatchExportRow, 'project_id' | 'model'>,
  { start, end }: { start: number; end: number },
  options: { timeoutMs: number; onStep?: () => void },
): Promise<number | null> {
  const earliest = async (sql: string, from: number, to: number): Promise<number | null> => {
    try {
      return await transaction(pool, async (client) => {
        const settings = {
          statement_timeout: String(Math.max(1, Math.floor(options.timeoutMs))),
          // The reader may run this, and sees one project.
          ...ofProject(project_id),
        };
        for (const [name, value] of Object.entries(settings)) {
          await client.query(`set local ${name} = '${value}'`);
        }
        const values = [project_id, new Date(from).toISOString(), new Date(to).toISOString()];
        const { rows } = await client.query(sql, values);
        return rows[0].first === null ? null : Date.parse(rows[0].first);
      });
    } catch (error) {
      if (isStatementTimeout(error)) return from;
      throw error;
    }
  };
  if (model === 'persons') return earliest(FIRST_CHANGE, start, end);
  for (let from = Math.max(start, EARLIEST); from < end; from += WEEK) {
    options.onStep?.();
    const found = await earliest(FIRST_EVENT, from, Math.min(from + WEEK, end));
    if (found !== null) return found;
  }
  return null;
}

const FIRST_EVENT =
  'select min(inserted_at) as first from events where project_id = $1 and inserted_at >= $2 and inserted_at < $3';

const FIRST_CHANGE = `select least(
  (select min(changed_at) from persons where project_id = $1 and changed_at >= $2 and changed_at < $3),
  (select min(changed_at) from deleted_distinct_ids where project_id = $1 and changed_at >= $2 and changed_at < $3)
) as first`;
