import { expect } from '@jest/globals';
import type { App } from '../../api/dependencies.ts';
import { openInputs } from '../../functions/reads/secrets.ts';
import type { Tenant, TestApi } from '../support/api.ts';

/** What the API answers. */
export interface Answer {
  status: number;
  // biome-ignore lint/suspicious/noExplicitAny: the tests look at what they expect.
  body: any;
}

export const LIVE = 'fetch(inputs.url)';
export const EDITED = "fetch(inputs.url, {'method': 'PUT'})";
export const OTHER = "fetch(inputs.url, {'method': 'PATCH'})";
export const WEBHOOK = {
  name: 'Webhook',
  hog: LIVE,
  enabled: true,
  inputs_schema: [
    { key: 'url', type: 'string', required: true },
    { key: 'token', type: 'string', secret: true },
  ],
  inputs: { url: { value: 'https://example.com/live' }, token: { value: 'live-token' } },
};

export type Drafting = ReturnType<typeof drafting>;

/** The requests of one tenant about functions and their drafts. */
export function drafting(api: TestApi, tenant: Tenant, app: App = api.app) {
  const ask = async (
    method: 'GET' | 'POST' | 'PATCH',
    path: string,
    payload?: object,
    { key = tenant.key, ...headers }: Record<string, string> = {},
  ): Promise<Answer> => {
    const answer = await app.inject({
      method,
      url: `/api/projects/${tenant.projectId}/hog_functions/${path}`,
      headers: { authorization: `Bearer ${key}`, ...headers },
      ...(payload ? { payload } : {}),
    });
    return { status: answer.statusCode, body: answer.json() };
  };
  /** The same for requests that must succeed. */
  const done = async (method: 'GET' | 'POST' | 'PATCH', path: string, payload?: object) => {
    const { status, body } = await ask(method, path, payload);
    expect([status, body]).toEqual([status < 300 ? status : 200, body]);
    return body;
  };
  return {
    ask,
    create: (more: object = {}) => done('POST', '', { ...WEBHOOK, ...more }),
    get: (id: string) => done('GET', `${id}/`),
    edit: (id: string, change: object) => done('PATCH', `${id}/`, change),
    stage: (id: string, change: object) => done('PATCH', `${id}/?draft=true`, change),
    preview: (id: string) => done('POST', `${id}/publish/`, { preview: true }),
    /** Previews a draft and publishes it with the token. */
    publish: async (id: string) => {
      const { confirm_token } = await done('POST', `${id}/publish/`, {});
      return done('POST', `${id}/publish/`, { confirm: true, confirm_token });
    },
    /** The secrets of a function as they are sealed, opened. */
    secrets: async (id: string) => {
      const { rows } = await api.pool.query('select id, secrets from functions where id = $1', [id]);
      return openInputs(api.keyring, rows[0]).inputs;
    },
    /** The log of what was done to a function, the newest entry first. */
    log: async (id: string) => {
      const url = `/api/projects/${tenant.projectId}/activity_log/?limit=1000`;
      const answer = await api.request(tenant, 'GET', url);
      return answer.json().results.filter((one: { item_id: string }) => one.item_id === id);
    },
  };
}

/** Lets requests wait for the lock on a function until all of them do, and returns their answers. */
export async function together(
  api: TestApi,
  id: string,
  requests: readonly (() => Promise<Answer>)[],
): Promise<Answer[]> {
  const client = await api.pool.connect();
  try {
    await client.query('begin');
    const { rows } = await client.query(
      'select pg_backend_pid() as pid from functions where id = $1 for update',
      [id],
    );
    let isOver = false;
    const answers = Promise.all(requests.map((one) => one())).finally(() => {
      isOver = true;
    });
    while (!isOver) {
      // Those behind the first one wait for it, and not for this transaction.
      const waiting = await api.pool.query(
        `with recursive held as (select $1::int as pid union
           select a.pid from pg_stat_activity a join held h on h.pid = any(pg_blocking_pids(a.pid)))
         select count(*)::int - 1 as count from held`,
        [rows[0].pid],
      );
      if (waiting.rows[0].count >= requests.length) break;
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    await client.query('commit');
    return await answers;
  } finally {
    client.release();
  }
}
