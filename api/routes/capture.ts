import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Warnings } from '../../capture/warnings.ts';
import { type Capture, type CaptureRequest, createCapture } from '../capture/capture.ts';
import { Gate, type Ticket } from '../capture/gate.ts';
import { LazyLogger } from '../capture/lazy-logger.ts';
import { createCaptureMetrics } from '../capture/metrics.ts';
import { createProjectKeys } from '../capture/project-keys.ts';
import { IDLE_MILLISECONDS, readBody } from '../capture/read-body.ts';
import { publicRoute } from '../capture/route-options.ts';
import { v1Answer } from '../capture/v1-answer.ts';
import type { ApiDependencies, App } from '../dependencies.ts';
import { errors } from '../errors.ts';
import { captured, eventBatch, oneEvent, v1Batch, v1Results } from '../schemas/capture.ts';
import { freeForm } from '../schemas/fields.ts';
import { remoteConfigRoutes } from './remote-config.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** What the client called its body; the framework is told that it is bytes. */
    wireType: string | undefined;
    /** What the request holds of the memory for bodies. */
    ticket: Ticket | undefined;
  }
}

const RAW = 'application/x-sluice-raw';
const JSON_TYPE = 'application/json; charset=utf-8';
const OK = '{"status":"Ok"}';
/** Tells the client to stop recording: to it, the quota for recordings is used up. */
const NO_RECORDINGS = '{"status":"Ok","quota_limited":["recordings"]}';
const NOTHING = Buffer.alloc(0);

/** Every path that clients of the last years send events to. The path does not decide the form of the body. */
const EVENT_PATHS = ['/i/v0/e/', '/e/', '/capture/', '/track/', '/engage/'];
const BATCH_PATH = '/batch/';
const V1_PATH = '/i/v1/analytics/events';
const RECORDING_PATH = '/s/';

function bearer(request: FastifyRequest): string | undefined {
  return /^Bearer\s+(\S+)\s*$/.exec(request.headers.authorization ?? '')?.[1];
}

function toCapture(request: FastifyRequest, isEngage: boolean): CaptureRequest {
  const { ip } = request;
  return {
    body: (request.body as Buffer | undefined) ?? NOTHING,
    ticket: request.ticket ?? { bytes: 0, atWork: 0 },
    contentType: request.wireType,
    contentEncoding: request.headers['content-encoding'],
    query: request.query as CaptureRequest['query'],
    // A socket for both families shows IPv4 clients as ::ffff:203.0.113.7.
    ip: ip?.startsWith('::ffff:') ? ip.slice(7) : ip,
    isEngage,
  };
}

/** Bodies of all content types arrive as bytes. */
function acceptBytes(app: App, gate: Gate, idle: number): void {
  app.decorateRequest('wireType', undefined);
  app.decorateRequest('ticket', undefined);
  app.addHook('onRequest', (request, _reply, done) => {
    const { headers } = request.raw;
    request.wireType = headers['content-type'];
    headers['content-type'] = RAW;
    done();
  });
  app.removeAllContentTypeParsers();
  app.addContentTypeParser(RAW, (request, payload, done) => {
    request.ticket = { bytes: 0, atWork: 0 };
    readBody(payload as Parameters<typeof readBody>[0], { gate, ticket: request.ticket, idle }, done);
  });
}

function eventRoutes(app: App, capture: Capture): void {
  const handler = (isEngage: boolean) => async (request: FastifyRequest, reply: FastifyReply) => {
    await capture.handle(toCapture(request, isEngage));
    if ((request.query as Record<string, unknown>).beacon === '1') return reply.code(204).send();
    return reply.header('content-type', JSON_TYPE).send(OK);
  };
  for (const path of EVENT_PATHS) {
    const handle = handler(path === '/engage/');
    app.post(path, publicRoute({ summary: 'Store an event', body: oneEvent, answer: captured }), handle);
    app.get(
      path,
      publicRoute({ summary: 'Store events given as the query parameter data', answer: captured }),
      handle,
    );
  }
  const batch = handler(false);
  app.post(
    BATCH_PATH,
    publicRoute({ summary: 'Store a batch of events', body: eventBatch, answer: captured }),
    batch,
  );
  app.get(
    BATCH_PATH,
    publicRoute({ summary: 'Store events given as the query parameter data', answer: captured }),
    batch,
  );
  app.post(
    V1_PATH,
    publicRoute({ summary: 'Store events, with a result for each', body: v1Batch, answer: v1Results }),
    async (request, reply) => {
      const sdk = request.headers['posthog-sdk-info'];
      const v1 = { sdk: typeof sdk === 'string' ? sdk : undefined, token: bearer(request) };
      const parsed = await capture.handle({ ...toCapture(request, false), v1 });
      return reply.header('content-type', JSON_TYPE).send(v1Answer(parsed));
    },
  );
}

/** The public side for events: what clients ask before they send, and everything they send. */
export function captureRoutes(deps: ApiDependencies, warnings: Warnings) {
  return async (app: App): Promise<void> => {
    const gate = new Gate();
    const capture = createCapture({
      ingest: deps.ingest,
      warnings,
      keys: createProjectKeys(deps.pool),
      metrics: createCaptureMetrics(deps.registry, gate),
      gate,
      transform: deps.transform,
    });
    app.addHook('onRequest', (_request, _reply, done) => {
      if (deps.isPrepared()) done();
      else done(errors.unavailable('The database is being brought up to date. Send it again.', 2));
    });
    app.setChildLoggerFactory((logger, bindings, options) => new LazyLogger(logger, bindings, options));
    acceptBytes(app, gate, deps.bodyIdleMilliseconds ?? IDLE_MILLISECONDS);
    eventRoutes(app, capture);
    // Session recordings are not stored; an error would only make clients send them again.
    app.post(
      RECORDING_PATH,
      publicRoute({ summary: 'Refuse session recordings', answer: freeForm }),
      async (request, reply) => {
        if (request.ticket) gate.leave(request.ticket);
        return reply.header('content-type', JSON_TYPE).send(NO_RECORDINGS);
      },
    );
    const configPaths = remoteConfigRoutes(app, capture, gate);
    for (const path of [...EVENT_PATHS, BATCH_PATH, V1_PATH, RECORDING_PATH, ...configPaths]) {
      // The CORS hook answers preflights, by the rules of the route it finds.
      app.options(path, publicRoute(), async (_request, reply) => reply.send());
    }
  };
}
