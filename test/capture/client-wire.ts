import type { IncomingMessage } from 'node:http';
import type { App } from '../../api/dependencies.ts';
import type { Pool } from '../../db/pool.ts';

/** Writes down what comes over the wire, while it is listened: `POST /batch/ application/json gzip`. */
export class WireLog {
  #lines: string[] = [];

  constructor(app: App) {
    app.server.prependListener('request', (request: IncomingMessage) => {
      const { method, url, headers } = request;
      const target = new URL(url as string, 'http://host');
      for (const name of ['_', 'ver']) if (target.searchParams.has(name)) target.searchParams.set(name, '…');
      target.pathname = target.pathname.replace(/^\/array\/[^/]+/, '/array/{token}');
      const type = headers['content-type']?.replace(/;\s*/, ';');
      const line = [
        method,
        decodeURIComponent(target.pathname + target.search),
        type,
        headers['content-encoding'],
      ];
      this.#lines.push(line.filter((part) => part !== undefined).join(' '));
    });
  }

  /** The kinds of requests since the last call, each once. */
  take(): string[] {
    const kinds = [...new Set(this.#lines)].sort();
    this.#lines = [];
    return kinds;
  }
}

export interface StoredEvent {
  event: string;
  distinct_id: string;
  timestamp: string;
  historical: boolean;
  properties: Record<string, unknown>;
}

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

/** Times that are corrected for the client's clock differ by its way to us: only their minutes are compared. */
function readable({ timestamp, historical }: StoredEvent): string {
  if (Math.abs(Date.parse(timestamp) - Date.now()) < 300_000) return '<now>';
  return historical ? timestamp : timestamp.slice(0, '2026-01-02T03:04'.length);
}

/** Everything stored for a project, by name; what differs from run to run replaced by its kind. */
export async function storedEvents(pool: Pool, projectId: number, dropped: RegExp): Promise<StoredEvent[]> {
  const { rows } = await pool.query<StoredEvent>(
    `select event, distinct_id, timestamp, historical, properties from events where project_id = $1
     order by event, distinct_id, timestamp`,
    [projectId],
  );
  return rows.map((row) => ({
    ...row,
    distinct_id: UUID.test(row.distinct_id) ? '<uuid>' : row.distinct_id,
    timestamp: readable(row),
    properties: Object.fromEntries(
      Object.entries(row.properties)
        .filter(([name]) => !dropped.test(name))
        .map(([name, value]) => [name, typeof value === 'string' && UUID.test(value) ? '<uuid>' : value])
        .sort(([a], [b]) => ((a as string) < (b as string) ? -1 : 1)),
    ),
  }));
}

/** The persons and groups that a project's events made; of their properties those that the program set by name. */
export async function storedPeople(pool: Pool, projectId: number) {
  const { rows: persons } = await pool.query(
    `select array_agg(d.distinct_id order by d.distinct_id) as ids, p.is_identified, p.properties
     from persons p join person_distinct_ids d on d.project_id = p.project_id and d.person_id = p.id
     where p.project_id = $1 group by p.project_id, p.id order by max(d.distinct_id)`,
    [projectId],
  );
  const { rows: groups } = await pool.query(
    `select t.group_type as type, g.group_key as key, g.properties from groups g
     join group_types t using (project_id, group_type_index) where project_id = $1 order by 1, 2`,
    [projectId],
  );
  const own = (properties: Record<string, unknown>) =>
    Object.fromEntries(
      Object.entries(properties).filter(([name, value]) => !name.startsWith('$') && value !== null),
    );
  return {
    persons: persons.map(({ ids, properties, ...rest }) => ({
      ids: ids.map((id: string) => (UUID.test(id) ? '<uuid>' : id)),
      ...rest,
      properties: own(properties),
    })),
    groups,
  };
}
