import type { CapturedEvent } from '../capture/captured-event.ts';
import { createIngest } from '../capture/ingest.ts';
import { Notices } from '../capture/parse/notices.ts';
import { type Config, workerPools } from '../config.ts';
import { createListener } from '../db/listen.ts';
import { type Address, createPool, type PoolLimits } from '../db/pool.ts';
import { createEgress, type EgressOptions } from '../egress/egress.ts';
import { AccessTokenError } from '../egress/google-tokens.ts';
import { createFunctionCompiler } from '../functions/compiler.ts';
import { Compute } from '../functions/delivery/compute.ts';
import { Deliverer, type DelivererOptions } from '../functions/delivery/deliverer.ts';
import type { FunctionEvent } from '../functions/delivery/delivery.ts';
import { Hosts } from '../functions/delivery/hosts.ts';
import { LargeAnswers } from '../functions/delivery/large-answers.ts';
import { Dispatcher } from '../functions/dispatch/dispatcher.ts';
import { Flood, type FloodDependencies } from '../functions/dispatch/flood.ts';
import { createFollower, NEW_EVENTS } from '../functions/dispatch/follower.ts';
import { InternalDispatcher } from '../functions/dispatch/internal.ts';
import { startDispatch } from '../functions/dispatch/loop.ts';
import { createDispatchMetrics } from '../functions/dispatch/metrics.ts';
import { IntegrationError, type Integrations } from '../functions/effects.ts';
import { createRunner } from '../functions/runner.ts';
import { createTransformer } from '../functions/transform/transformer.ts';
import { createCredentials } from '../integrations/credentials.ts';
import { PRODUCTS } from '../products.ts';
import type { Keyring } from '../secrets/envelope.ts';
import type { Logger } from '../telemetry/logger.ts';
import type { Registry } from '../telemetry/metrics.ts';
import { mergeHook } from '../tenancy/product.ts';

export interface FunctionRuntimeDependencies {
  config: Config;
  /** The address of the database, as the server. */
  address: Address;
  keyring: Keyring | undefined;
  logger: Logger;
  registry?: Registry | undefined;
  /** Looks up the names of hosts. Undefined: as the system does. */
  resolve?: EgressOptions['resolve'];
  /** How invocations are taken. Undefined: as the settings say. */
  delivering?: Partial<DelivererOptions>;
}

export interface FunctionRuntime {
  /** Takes nothing more, and lets what runs end. */
  close(): Promise<void>;
}

/** How long Postgres lets connections work and wait, in milliseconds. docs/operations.md lists them. */
const LIMITS: Record<'functions' | 'functionReads' | 'functionIngest', PoolLimits> = {
  functions: { lock: 10_000, statement: 60_000, transaction: 120_000 },
  functionReads: { lock: 10_000, statement: 60_000, transaction: 120_000 },
  functionIngest: { lock: 10_000, statement: 60_000, transaction: 120_000 },
};
/** One host has at most this part of the places. */
const OF_A_HOST = 0.5;

/** Runs functions: finds out which events they want, and delivers what they send. It needs no Temporal. */
export function startFunctions(deps: FunctionRuntimeDependencies): FunctionRuntime {
  const { config, address, keyring, logger, registry, resolve } = deps;
  const sizes = workerPools(config, 0);
  const connect = (name: string, kind: keyof typeof LIMITS) =>
    createPool({
      url: address,
      ...{ name, size: sizes[kind], limits: LIMITS[kind] },
      onError: (error) => logger.warn({ err: error }, `a connection to Postgres (${name}) broke`),
    });
  const pool = connect('functions', 'functions');
  const readPool = connect('function-reads', 'functionReads');
  const ingestPool = connect('function-ingest', 'functionIngest');
  const listener = createListener({
    url: address,
    name: 'function-listener',
    onError: (error) =>
      logger.warn({ err: error }, 'the connection that hears of new events broke; reconnecting'),
  });
  const compiler = createFunctionCompiler({ threads: 1 });
  const runner = createRunner({ maxWaiting: 2_000, maxWaitingOfOne: 500 });
  const egress = createEgress({ allow: config.SLUICE_EGRESS_ALLOW, resolve });
  const ingest = createIngest({
    ...{ pool: ingestPool, logger, follower: createFollower({ pool, logger }) },
    ...{ personsMerged: mergeHook(PRODUCTS), limits: { connections: sizes.functionIngest } },
  });
  const site = config.SLUICE_PUBLIC_URL;
  const integrations = integrationsOf({ pool, keyring, egress });
  const geoip = config.SLUICE_GEOIP_DATABASE || undefined;
  const transformer = createTransformer({
    ...{ pool, logger, registry, keyring, compiler, integrations, site, geoip, threads: 2 },
  });
  const places = config.SLUICE_FUNCTION_CONCURRENCY;
  const deliverer = new Deliverer(
    {
      ...{ pool, readPool, logger, keyring, compiler, site, egress },
      compute: new Compute(runner),
      hosts: new Hosts(Math.max(1, Math.floor(places * OF_A_HOST))),
      largeAnswers: new LargeAnswers(),
      integrations,
      capture: async (projectId, events) => {
        // The project is looked up each time: this process does not hear of changes.
        const transformed = await transformer.transform(
          { id: projectId },
          events.map(capturedEvent),
          new Notices(),
        );
        await ingest.submit({ projectId, events: transformed });
      },
    },
    { places, leaseSeconds: config.SLUICE_FUNCTION_LEASE_SECONDS, ...deps.delivering },
  );
  const metrics = createDispatchMetrics(registry);
  const queued: FloodDependencies['queued'] = (functions) => deliverer.due(functions);
  const dispatcher = new Dispatcher({
    ...{ pool, readPool, logger, site, metrics, queued },
    take: (invocations) => deliverer.take(invocations),
  });
  const flood = new Flood({ pool, queued, missing: (count) => metrics.missing.inc(count) });
  const internal = new InternalDispatcher({ pool, runner, site, queued });
  const dispatch = startDispatch(dispatcher, internal, flood, logger);
  const ignore = listener.subscribe(NEW_EVENTS, {
    told: () => dispatch.stir(),
    missed: () => dispatch.stir(),
  });
  deliverer.start();
  return {
    async close() {
      ignore();
      await Promise.all([dispatch.close(), deliverer.close()]);
      await Promise.all([ingest.close(), transformer.close()]);
      await Promise.all([runner.close(), compiler.close(), egress.close(), listener.close()]);
      await Promise.all([pool.end(), readPool.end(), ingestPool.end()]);
    },
  };
}

function integrationsOf(deps: Parameters<typeof createCredentials>[0]): Integrations {
  const credentials = createCredentials(deps);
  return {
    ...credentials,
    resolve: (...args) =>
      credentials.resolve(...args).catch((error: unknown) => {
        if (!(error instanceof AccessTokenError)) throw error;
        throw new IntegrationError(error.message, { isTemporary: true });
      }),
  };
}

/** An event that a program asks to capture, as capture takes it. */
function capturedEvent(
  { uuid, event, distinct_id, properties }: FunctionEvent,
  index: number,
): CapturedEvent {
  const now = Date.now();
  return {
    ...{ index, uuid, event: String(event), distinct_id: String(distinct_id), properties },
    ...{ timestamp: now, received_at: now, ip: undefined, historical: false },
  };
}
