import type { Pool } from '../../db/pool.ts';
import { transaction } from '../../db/pool.ts';
import { isStatementTimeout } from '../../db/reading.ts';
import { ofProject } from '../../db/roles/project-setting.ts';
import type { FirstData } from '../../models/index.ts';

const WEEK = 7 * 86_400_000;
/** No event was stored before this instant, because no installation is as old. */
const EARLIEST = Date.UTC(2020, 0, 1);

/**
 * Finds when the first row of a project's model was stored within [start, end). Null: none was. A search that takes too long returns the beginning of the time that it searched: the result
 * may be too early, but never too late.
 */
export async function firstDataWithin(
  pool: Pool,
  projectId: number,
  { sql, isByWeek }: FirstData,
  { start, end }: { start: number; end: number },
  options: { timeoutMs: number; onStep?: () => void },
): Promise<number | null> {
  const earliest = async (from: number, to: number): Promise<number | null> => {
    try {
      return await transaction(pool, async (client) => {
        const settings = {
          statement_timeout: String(Math.max(1, Math.floor(options.timeoutMs))),
          // The reader may run this, and sees one project.
          ...ofProject(projectId),
        };
        for (const [name, value] of Object.entries(settings)) {
          await client.query(`set local ${name} = '${value}'`);
        }
        const values = [projectId, new Date(from).toISOString(), new Date(to).toISOString()];
        const { rows } = await client.query(sql, values);
        return rows[0].first === null ? null : Date.parse(rows[0].first);
      });
    } catch (error) {
      if (isStatementTimeout(error)) return from;
      throw error;
    }
  };
  if (!isByWeek) return earliest(start, end);
  for (let from = Math.max(start, EARLIEST); from < end; from += WEEK) {
    options.onStep?.();
    const found = await earliest(from, Math.min(from + WEEK, end));
    if (found !== null) return found;
  }
  return null;
}
