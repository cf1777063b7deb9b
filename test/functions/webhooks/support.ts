import { expect } from '@jest/globals';
import type { Tenant, TestApi } from '../../support/api.ts';

const base = (tenant: Tenant) => `/api/projects/${tenant.projectId}/hog_functions/`;

/** Functions that take requests, and what is stored of them. */
export function webhooksOf(api: TestApi, host: () => string) {
  return {
    async create(tenant: Tenant, body: Record<string, unknown>): Promise<string> {
      const given = { type: 'source_webhook', enabled: true, ...body };
      const answer = await api.request(tenant, 'POST', base(tenant), given);
      expect(answer.json()).toMatchObject({ id: expect.any(String) });
      return answer.json().id;
    },
    async change(tenant: Tenant, id: string, body: Record<string, unknown>): Promise<void> {
      const answer = await api.request(tenant, 'PATCH', `${base(tenant)}${id}/`, body);
      expect(answer.statusCode).toBe(200);
    },
    async ask(id: string, options: RequestInit & { query?: string } = {}) {
      const { query = '', ...init } = options;
      const response = await fetch(`${host()}/public/webhooks/${id}${query}`, { method: 'POST', ...init });
      return { status: response.status, headers: response.headers, text: await response.text() };
    },
    async events(
      tenant: Tenant,
    ): Promise<{ event: string; distinct_id: string; properties: Record<string, unknown> }[]> {
      const { rows } = await api.pool.query(
        'select event, distinct_id, properties from events where project_id = $1 order by inserted_at, uuid',
        [tenant.projectId],
      );
      return rows;
    },
    async logs(id: string): Promise<[level: string, message: string][]> {
      const { rows } = await api.pool.query(
        'select level, message from function_logs where function_id = $1 order by timestamp',
        [id],
      );
      return rows.map(({ level, message }) => [level, message]);
    },
    async counts(id: string): Promise<Record<string, number>> {
      const { rows } = await api.pool.query(
        "select kind || ' ' || name as name, sum(count)::int as count from function_metrics where function_id = $1 group by 1",
        [id],
      );
      return Object.fromEntries(rows.map(({ name, count }) => [name, count]));
    },
  };
}

/** JSON as a request. */
export const json = (body: unknown, headers: Record<string, string> = {}): RequestInit => ({
  body: JSON.stringify(body),
  headers: { 'content-type': 'application/json', ...headers },
});
