import { afterAll, beforeAll } from '@jest/globals';
import type { Client } from '@temporalio/client';
import { uuidv7 } from '../../../db/uuid.ts';
import { ReplayMatcher } from '../../../functions/replay/matcher.ts';
import type { ReplayRunDependencies } from '../../../functions/runs/replays.ts';
import type { FunctionTemporal } from '../../../functions/temporal.ts';
import { createLogger } from '../../../telemetry/logger.ts';
import type { Work } from '../../../tenancy/product.ts';
import type { RunningWorker } from '../../../worker/worker.ts';
import type { Tenant } from '../../support/api.ts';
import { eventually } from '../../support/eventually.ts';
import { insertEvents } from '../../support/rows.ts';
import { connectTo } from '../../support/temporal.ts';
import { startTestWorker } from '../../support/worker.ts';
import { type RuntimeWorld, runtimeForFile } from './world.ts';

export interface Shown extends Record<string, unknown> {
  id: string;
  status: string;
}

/** A world in which functions are run for past events and for persons. */
export interface ReplayWorld extends RuntimeWorld {
  client: Client;
  /** What the steps of replays need, without Temporal. */
  steps: ReplayRunDependencies;
  /** Asks the API about a function: method, and what follows its id in the path. */
  ask(id: string, method: string, path: string, body?: object): Promise<{ status: number; body: Shown }>;
  begin(id: string, body: object, path?: string): Promise<Shown>;
  show(id: string, replay: string): Promise<Shown>;
  /** Waits until a replay has a status. */
  until(id: string, replay: string, status: string): Promise<Shown>;
  /** Stores events, one each second from an instant, with their numbers as property. */
  store(from: string, count: number, fields?: object): Promise<string[]>;
  /** The events for which invocations of a function wait, sorted. */
  waiting(id: string): Promise<string[]>;
}

/** A piece of work that nobody stops. */
export const unstopped = (): Work => ({ signal: new AbortController().signal, beat: () => undefined });

const silent: FunctionTemporal = {
  isReachable: () => true,
  within: (_milliseconds, work) => work(),
  stir: async () => undefined,
  startNotice: async () => true,
};

/** `delivers`: whether invocations run. `worker`: whether a worker runs workflows from the beginning. */
export function replayWorldForFile({ delivers = true, worker = true } = {}): ReplayWorld {
  let running: RunningWorker | undefined;
  let matcher: ReplayMatcher | undefined;
  // Hooks run in the order of their definition: this one before the database goes.
  afterAll(async () => {
    await running?.stop();
    await matcher?.close();
    await world.client?.connection.close();
  });
  // On a slow machine a claim must not end while its work goes on: what is begun twice arrives twice.
  const settings = { SLUICE_FUNCTION_LEASE_SECONDS: '600' };
  const runtime = runtimeForFile({ starts: delivers, settings });
  const world = runtime as ReplayWorld;
  const base = (id: string, { projectId }: Tenant = world.anna) =>
    `/api/projects/${projectId}/hog_functions/${id}/`;
  world.ask = async (id, method, path, body) => {
    const answer = await world.api.request(world.anna, method, `${base(id)}${path}`, body);
    return { status: answer.statusCode, body: answer.json() };
  };
  world.begin = async (id, body, path = 'replay/') => {
    const answer = await world.ask(id, 'POST', path, body);
    if (answer.status > 201) throw new Error(JSON.stringify(answer.body));
    return answer.body;
  };
  world.show = async (id, replay) => (await world.ask(id, 'GET', `replays/${replay}/`)).body;
  world.until = (id, replay, status) =>
    eventually(async () => {
      const shown = await world.show(id, replay);
      return shown.status === status && shown;
    });
  world.store = async (from, count, fields = {}) => {
    const uuids = Array.from({ length: count }, () => uuidv7());
    await insertEvents(
      world.api.pool,
      uuids.map((uuid, index) => ({
        ...{ project_id: world.anna.projectId, uuid, event: 'order', distinct_id: `d-${index % 7}` },
        ...{ timestamp: new Date(Date.parse(from) + index * 1_000).toISOString(), properties: { id: index } },
        ...{ inserted_at: new Date(Date.now() - 60_000).toISOString(), ...fields },
      })),
    );
    return uuids;
  };
  world.waiting = async (id) => {
    const { rows } = await world.api.pool.query(
      'select event_uuid from function_queue where function_id = $1 order by event_uuid',
      [id],
    );
    return rows.map((row) => row.event_uuid);
  };
  beforeAll(async () => {
    const { config, pool, schedules } = world.api;
    matcher = new ReplayMatcher(pool);
    const logger = createLogger({ name: 'test', level: 'silent' });
    world.steps = { pool, matcher, logger, temporal: silent, site: config.SLUICE_PUBLIC_URL };
    const { TEMPORAL_ADDRESS: address, TEMPORAL_NAMESPACE: namespace } = config;
    world.client = await connectTo({ address: address as string, namespace });
    if (worker) running = await startTestWorker({ config, pool, schedules });
  });
  return world;
}
