import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { afterAll, beforeAll } from '@jest/globals';
import { createLogger } from '../../../telemetry/logger.ts';
import {
  type FunctionRuntime,
  type FunctionRuntimeDependencies,
  startFunctions,
} from '../../../worker/function-tools.ts';
import { apiForFile, type Tenant, type TestApi } from '../../support/api.ts';
import { eventually } from '../../support/eventually.ts';
import { reservePort } from '../../support/ports.ts';

/** A request that the target of functions has received. */
export interface Arrival {
  path: string;
  method: string;
  headers: IncomingMessage['headers'];
  body: string;
  at: number;
}

type Answer = (arrival: Arrival, response: ServerResponse) => void;

/** An API, a runtime of functions, and a server that functions send to. */
export interface RuntimeWorld {
  api: TestApi;
  anna: Tenant;
  arrivals: Arrival[];
  /** Decides how the server answers. */
  answer(how: Answer): void;
  url(path?: string): string;
  /** Starts a runtime. It is stopped at the end of the file. */
  start(more?: Pick<FunctionRuntimeDependencies, 'resolve' | 'delivering'>): FunctionRuntime;
  stop(runtime: FunctionRuntime): Promise<void>;
  create(fields: object, tenant?: Tenant): Promise<string>;
  change(id: string, fields: object, tenant?: Tenant): Promise<void>;
  capture(events: object[], tenant?: Tenant): Promise<void>;
  /** Waits until nothing is left to do. */
  idle(): Promise<void>;
  totals(id: string, tenant?: Tenant): Promise<Record<string, number>>;
  history(id: string): Promise<Record<string, unknown>[]>;
  /** The log, newest first. */
  logs(id: string, tenant?: Tenant): Promise<{ level: string; message: string }[]>;
}

const OK: Answer = (_arrival, response) => response.end('{"ok":true}');

export function runtimeForFile({
  starts = true,
  settings = {},
}: {
  starts?: boolean;
  settings?: Record<string, string>;
} = {}): RuntimeWorld {
  const runtimes = new Set<FunctionRuntime>();
  let server: Server;
  let port = 0;
  let how = OK;
  afterAll(async () => {
    await Promise.all([...runtimes].map((one) => one.close()));
    server?.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  const api = apiForFile({ SLUICE_EGRESS_ALLOW: '127.0.0.1', ...settings });
  const world: RuntimeWorld = {
    ...{ api, anna: undefined as unknown as Tenant, arrivals: [] },
    answer: (next) => {
      how = next;
    },
    url: (path = '') => `http://127.0.0.1:${port}/${path}`,
    start(more = {}) {
      const { config, keyring } = api;
      const logger = createLogger({ name: 'test', level: 'silent' });
      const runtime = startFunctions({
        ...{ config, keyring, logger, address: config.DATABASE_URL as string, ...more },
      });
      runtimes.add(runtime);
      return runtime;
    },
    async stop(runtime) {
      runtimes.delete(runtime);
      await runtime.close();
    },
    async create(fields, tenant = world.anna) {
      const base = `/api/projects/${tenant.projectId}/hog_functions/`;
      const answer = await api.request(tenant, 'POST', base, { enabled: true, ...fields });
      if (answer.statusCode !== 201) throw new Error(answer.body);
      return answer.json().id;
    },
    async change(id, fields, tenant = world.anna) {
      const path = `/api/projects/${tenant.projectId}/hog_functions/${id}/`;
      const answer = await api.request(tenant, 'PATCH', path, fields);
      if (answer.statusCode !== 200) throw new Error(answer.body);
    },
    async capture(events, tenant = world.anna) {
      const batch = events.map((one) => ({ distinct_id: 'ada', event: 'order', ...one }));
      const answer = await api.request(null, 'POST', '/batch/', { api_key: tenant.projectToken, batch });
      if (answer.statusCode !== 200) throw new Error(answer.body);
    },
    async idle() {
      await eventually(async () => {
        const { rows } = await api.pool.query(
          `select (select count(*) from function_batches) + (select count(*) from function_late_batches)
             + (select count(*) from function_queue) as left`,
        );
        return Number(rows[0].left) === 0;
      });
    },
    async totals(id, tenant = world.anna) {
      const path = `/api/projects/${tenant.projectId}/hog_functions/${id}/metrics/totals/?breakdown_by=name`;
      return (await api.request(tenant, 'GET', path)).json().totals;
    },
    async logs(id, tenant = world.anna) {
      const path = `/api/projects/${tenant.projectId}/hog_functions/${id}/logs/?limit=500`;
      return (await api.request(tenant, 'GET', path)).json().results;
    },
    async history(id) {
      const { rows } = await api.pool.query(
        'select * from function_invocations where function_id = $1 order by created_at, id',
        [id],
      );
      return rows;
    },
  };
  beforeAll(async () => {
    world.anna = await api.createTenant('Anna');
    port = await reservePort();
    server = createServer(async (request, response) => {
      const chunks: Buffer[] = [];
      for await (const chunk of request) chunks.push(chunk as Buffer);
      const arrival = {
        path: (request.url ?? '').slice(1),
        method: request.method ?? '',
        headers: request.headers,
        body: Buffer.concat(chunks).toString(),
        at: Date.now(),
      };
      world.arrivals.push(arrival);
      how(arrival, response);
    });
    await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
    if (starts) world.start();
  });
  return world;
}

/** A function that sends something about its event. */
export const sender = (url: string, more: object = {}) => ({
  hog: "fetch(inputs.url, {'method': 'POST', 'body': inputs.body})",
  inputs_schema: [
    { key: 'url', type: 'string', required: true },
    { key: 'body', type: 'json' },
  ],
  inputs: { url: { value: url }, body: { value: { name: '{event.event}', id: '{event.properties.id}' } } },
  ...more,
});
