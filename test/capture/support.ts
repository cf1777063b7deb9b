import { spawn } from 'node:child_process';
import path from 'node:path';
import type { CapturedEvent } from '../../capture/captured-event.ts';
import { type CarryLimits, carryCopied } from '../../capture/carry.ts';
import type { Pool } from '../../db/pool.ts';
import { uuidv7 } from '../../db/uuid.ts';
import { KNOWN_IDS } from '../support/event-ids.ts';

export function capturedEvent(fields: Partial<CapturedEvent> = {}): CapturedEvent {
  return {
    index: 0,
    uuid: uuidv7(),
    event: 'page viewed',
    distinct_id: 'user-1',
    properties: { $current_url: 'https://example.com/' },
    timestamp: Date.UTC(2026, 0, 2, 3, 4, 5, 678),
    received_at: Date.UTC(2026, 0, 2, 3, 4, 6, 789),
    ip: undefined,
    historical: false,
    ...fields,
  };
}

export interface KilledWriter {
  sent: Set<string>;
  stored: Set<string>;
}

/** Starts a process that stores events, and kills it without a warning when `enough` of them were acknowledged. */
export async function runAndKillWriter(
  url: string,
  projectId: number,
  enough: number,
): Promise<KilledWriter> {
  const lines = { sent: new Set<string>(), stored: new Set<string>() };
  const child = spawn(
    process.execPath,
    [path.join(import.meta.dirname, 'writer-process.ts'), url, String(projectId), '24'],
    { stdio: ['ignore', 'pipe', 'pipe'] },
  );
  let [rest, errors] = ['', ''];
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    errors += text;
  });
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    const parts = (rest + text).split('\n');
    rest = parts.pop() as string;
    for (const line of parts) {
      const [kind, uuid] = line.split(' ') as ['sent' | 'stored', string];
      lines[kind].add(uuid);
    }
    if (lines.stored.size >= enough) child.kill('SIGKILL');
  });
  await new Promise((resolve) => child.once('close', resolve));
  if (lines.stored.size < enough) throw new Error(`the writer ended by itself: ${errors}`);
  return lines;
}

/** Every uuid in storage and how often; ids that have no event, too. */
export async function census(pool: Pool, projectId: number) {
  const { rows } = await pool.query(
    `with i as (select distinct project_id, uuid from ${KNOWN_IDS} where project_id = $1)
     select coalesce(e.uuid, i.uuid) as uuid, count(e.uuid)::int as events, count(i.uuid)::int as ids
     from (select * from events where project_id = $1) e full join i on i.uuid = e.uuid group by 1`,
    [projectId],
  );
  return {
    uuids: new Set<string>(rows.map((row) => row.uuid)),
    /** Must stay empty: stored twice, or an event without its id, or an id without its event. */
    wrong: rows.filter((row) => row.events !== 1 || row.ids !== 1),
  };
}

/** Carries what is copied from events into their persons, as maintenance does, and everything at once. */
export const carryAll = (pool: Pool, limits: Partial<CarryLimits> = {}) =>
  carryCopied(
    pool,
    { signal: new AbortController().signal, beat: () => {} },
    { patience: 0, horizon: 0, ...limits },
  );
