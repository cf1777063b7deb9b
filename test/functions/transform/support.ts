import { randomUUID } from 'node:crypto';
import { PROJECT_KEYS_CHANNEL } from '../../../db/projects.ts';
import type { Tenant, TestApi } from '../../support/api.ts';
import { apiForFile } from '../../support/api.ts';

export interface Stored {
  uuid: string;
  event: string;
  distinct_id: string;
  properties: Record<string, unknown>;
  transformations: { id: string; properties: string[]; fields?: string[] }[] | null;
}

/** The API of a file, and what its tests of transformations need. */
export function transformingApi(env: Record<string, string> = {}) {
  const api = apiForFile(env);
  const base = (tenant: Tenant) => `/api/projects/${tenant.projectId}/hog_functions/`;

  /** Waits until the API has heard that something of a project has changed. */
  async function heard<T>(tenant: Tenant, change: () => Promise<T>): Promise<T> {
    const told = Promise.withResolvers<void>();
    const ignore = api.listener.subscribe(PROJECT_KEYS_CHANNEL, {
      told: (token) => {
        if (token === tenant.projectToken) told.resolve();
      },
      missed: told.resolve,
    });
    try {
      const result = await change();
      await told.promise;
      return result;
    } finally {
      ignore();
    }
  }

  return Object.assign(api as TestApi, {
    /** Creates an enabled transformation, and returns its id. */
    async transform(tenant: Tenant, given: Record<string, unknown>): Promise<string> {
      const answer = await heard(tenant, () =>
        api.request(tenant, 'POST', base(tenant), {
          ...{ type: 'transformation', enabled: true, name: 'One' },
          ...given,
        }),
      );
      if (answer.statusCode !== 201) throw new Error(answer.body);
      return answer.json().id;
    },

    async change(tenant: Tenant, id: string, given: Record<string, unknown>): Promise<void> {
      const answer = await heard(tenant, () => api.request(tenant, 'PATCH', `${base(tenant)}${id}/`, given));
      if (answer.statusCode !== 200) throw new Error(answer.body);
    },

    /** Sends events in one request. Those without a uuid get one. */
    send(tenant: Tenant, events: Record<string, unknown>[], more: Record<string, unknown> = {}) {
      const batch = events.map((one) => ({ uuid: randomUUID(), event: 'seen', distinct_id: 'ada', ...one }));
      return api.app.inject({
        ...{ method: 'POST', url: '/batch/' },
        payload: { api_key: tenant.projectToken, batch, ...more },
      });
    },

    /** Sends events, and returns what is stored of them, in the order of their names. */
    async stored(tenant: Tenant, events: Record<string, unknown>[], more = {}): Promise<Stored[]> {
      const named = events.map((one) => ({ uuid: randomUUID(), ...one }));
      const answer = await this.send(tenant, named, more);
      if (answer.statusCode !== 200) throw new Error(`${answer.statusCode}: ${answer.body}`);
      const { rows } = await api.pool.query(
        `select uuid, event, distinct_id, properties, transformations from events
         where project_id = $1 and uuid = any($2) order by event, uuid`,
        [tenant.projectId, named.map((one) => one.uuid)],
      );
      return rows;
    },

    async counts(id: string): Promise<Record<string, number>> {
      await api.transformer.flush();
      const { rows } = await api.pool.query(
        'select kind, name, sum(count)::int as count from function_metrics where function_id = $1 group by 1, 2',
        [id],
      );
      return Object.fromEntries(rows.map((row) => [`${row.kind} ${row.name}`, row.count]));
    },

    async logs(id: string): Promise<string[]> {
      await api.transformer.flush();
      const { rows } = await api.pool.query(
        'select level, message from function_logs where function_id = $1 order by timestamp',
        [id],
      );
      return rows.map((row) => `${row.level} ${row.message}`);
    },

    async countEvents(tenant: Tenant): Promise<number> {
      const { rows } = await api.pool.query(
        'select count(*)::int as count from events where project_id = $1',
        [tenant.projectId],
      );
      return rows[0].count;
    },
  });
}
