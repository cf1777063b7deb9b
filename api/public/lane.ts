import type { IncomingMessage } from 'node:http';
import type { FastifyInstance } from 'fastify';
import type { z } from 'zod';
import type { Listener } from '../../db/listen.ts';
import type { Queryable } from '../../db/pool.ts';
import type { DurationHistogram } from '../../telemetry/durations.ts';
import type { Copies } from '../copies.ts';
import { errorBody } from '../fields.ts';
import { preflight } from './answer.ts';
import { BodyPool, MemoryAfterRush } from './body-memory.ts';
import { keyCopies } from './copied.ts';
import type { DirectRoutes } from './direct.ts';
import { type ExchangeContext, exchange, type Handle, RefusalLog, whenPrepared } from './exchange.ts';
import { type Budget, type Gate, Gates } from './gate.ts';
import { createProjectKeys, type ProjectKeys } from './project-keys.ts';
import { IDLE_MILLISECONDS, IdleWatch, type LargestBody } from './read-body.ts';

const MIB = 1024 * 1024;
/** What the bodies of all products together may take. Each product has a fixed share; the rest is for further products. */
const TOTAL: Budget = { held: 256 * MIB, atWork: 24 * MIB, unpacking: 4 };

/** A user of the lane. */
export interface LaneMember {
  /** Names the product when its share does not fit. */
  name: string;
  /** The group of its routes in the OpenAPI document. */
  tag: string;
  share: Budget;
  largestBody: LargestBody;
  /** Its routes answer from copies on disk before the database was reached for the first time. */
  startsAlone?: true;
}

/** What the OpenAPI document says of a route. */
export interface Description {
  summary: string;
  body?: z.ZodType;
  params?: z.ZodType;
  answer?: z.ZodType;
}

/** Adds a public route. A route without a description is left out of the OpenAPI document. */
export type AddRoute = (
  method: 'GET' | 'POST',
  path: string,
  handle: Handle,
  description?: Description,
) => void;

/**
 * Lets some requests of a route that stands elsewhere take the way around the framework: those that `takes` chooses. Its checks
 * are all that protects what `handle` answers.
 */
export type AddShortcut = (
  method: 'GET',
  path: string,
  takes: (request: IncomingMessage) => boolean,
  handle: Handle,
) => void;

/** The fast way for public requests, which carry a project key or none. Each product joins it with routes of its own. */
export interface Lane {
  keys: ProjectKeys;
  /** A handler gives the memory of a body back here when it needs the body no longer. */
  bodies: BodyPool;
  /**
   * Opens the product's gate. Throws when the product's share is more than the other products leave, or less than its
   * largest body, which would be refused for ever.
   */
  join(product: LaneMember): { gate: Gate; add: AddRoute; addShortcut: AddShortcut };
  /** Calls this when the server closes. */
  onClose(close: () => void | Promise<void>): void;
}

/** The schemas of these routes only describe. Each handler judges its body itself, faster and with more tolerance. */
const unchecked = () => (value: unknown) => ({ value });

function documented(tag: string, { summary, body, params, answer }: Description) {
  return {
    tags: [tag],
    summary,
    ...(body ? { body } : {}),
    ...(params ? { params } : {}),
    ...(answer ? { response: { 200: answer, 401: errorBody, ...(params ? { 404: errorBody } : {}) } } : {}),
  };
}

/** Sets up the lane on a part of the server that has no hooks, so that its requests pay for nothing else. */
export function openLane(
  app: FastifyInstance,
  deps: {
    lanePool: Queryable;
    listener: Listener;
    durations: DurationHistogram;
    isPrepared: () => boolean;
    copies?: Copies | undefined;
    /** The way around the framework. Without it, all requests take the way of the framework. */
    direct?: DirectRoutes;
    /** How many keys of an address may be looked up in vain in a minute; 0, or nothing, means any number. */
    wrongKeysPerMinute?: number;
    /** How long a client may send nothing in the middle of a body. */
    bodyIdleMilliseconds?: number | undefined;
  },
): Lane {
  const { durations, isPrepared, direct } = deps;
  const keys = createProjectKeys(whenPrepared(deps.lanePool, isPrepared), deps.listener, {
    wrongPerMinute: deps.wrongKeysPerMinute ?? 0,
    copies: deps.copies && keyCopies(deps.copies),
  });
  const gates = new Gates(TOTAL);
  const bodies = new BodyPool();
  const memory = new MemoryAfterRush({ before: () => bodies.clear() });
  const watch = new IdleWatch(deps.bodyIdleMilliseconds ?? IDLE_MILLISECONDS);
  const log = new RefusalLog();
  app.addHook('onClose', async () => {
    keys.close();
    memory.close();
    watch.close();
  });
  // Only faults of the server are logged, so a logger for each request would be made in vain.
  app.setChildLoggerFactory((logger) => logger);

  function join({ name, tag, share, largestBody, startsAlone }: LaneMember) {
    if (share.held < largestBody.bytes) {
      throw new Error(
        `${name} accepts bodies of ${largestBody.bytes} bytes, but its share holds ${share.held}.`,
      );
    }
    const gate = gates.open(name, share);
    const context: ExchangeContext = {
      ...{ gate, bodies, watch, largestBody, durations, memory, log },
      isPrepared: startsAlone ? () => true : isPrepared,
    };
    const paths = new Set<string>();
    const route = (method: string, path: string, handle: Handle, description?: Description) => {
      const answer = exchange(path, handle, context);
      direct?.add(method, path, answer);
      app.route({
        method,
        url: path,
        config: { access: 'public' },
        validatorCompiler: unchecked,
        schema: description ? documented(tag, description) : { hide: true },
        onRequest: (request, reply) => {
          reply.hijack();
          answer(request, reply.raw);
        },
        handler: () => {
          throw new Error('A route of the public lane answers before its handler is reached.');
        },
      });
    };
    const add: AddRoute = (method, path, handle, description) => {
      route(method, path, handle, description);
      if (!paths.has(path)) route('OPTIONS', path, preflight);
      paths.add(path);
    };
    const addShortcut: AddShortcut = (method, path, takes, handle) =>
      direct?.add(method, path, exchange(path, handle, context), takes);
    return { gate, add, addShortcut };
  }
  return { keys, bodies, join, onClose: (close) => app.addHook('onClose', async () => close()) };
}
