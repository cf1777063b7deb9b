import type { FastifyRequest } from 'fastify';
import type { Warnings } from '../../capture/warnings.ts';
import type { DurationHistogram } from '../../telemetry/durations.ts';
import type { ApiDependencies, App } from '../dependencies.ts';
import { freeForm } from '../fields.ts';
import { type Answer, preflight } from '../public/answer.ts';
import { BodyPool } from '../public/body-memory.ts';
import { clientAddress, Exchanges, type Handle, type Incoming } from '../public/exchange.ts';
import { Gate } from '../public/gate.ts';
import type { ProjectKeys } from '../public/project-keys.ts';
import { type Description, publicRoute } from '../public/route-options.ts';
import { remoteConfigRoutes } from '../remote-config.ts';
import { type Capture, type CaptureRequest, createCapture, type Handled } from './capture.ts';
import { captured, eventBatch, oneEvent, v1Batch, v1Results } from './event-schema.ts';
import { createCaptureMetrics } from './metrics.ts';

const NOTHING = Buffer.alloc(0);
const OK: Answer = { status: 200, body: '{"status":"Ok"}' };
const EMPTY: Answer = { status: 204, body: '' };
/** Tells the client to stop recording: to it, the quota for recordings is used up. */
const NO_RECORDINGS: Answer = { status: 200, body: '{"status":"Ok","quota_limited":["recordings"]}' };

/** Every path that clients of the last years send events to. The path does not decide the form of the body. */
const EVENT_PATHS = ['/i/v0/e/', '/e/', '/capture/', '/track/', '/engage/'];
const BATCH_PATH = '/batch/';
const V1_PATH = '/i/v1/analytics/events';
const RECORDING_PATH = '/s/';

function bearer(request: FastifyRequest): string | undefined {
  return /^Bearer\s+(\S+)\s*$/.exec(request.headers.authorization ?? '')?.[1];
}

/** Takes the body over: the request outlives it by a commit. */
function toCapture(incoming: Incoming, isEngage: boolean): CaptureRequest {
  const { request, body, ticket } = incoming;
  const { ip, headers } = request;
  incoming.body = NOTHING;
  return {
    body,
    ticket,
    contentType: headers['content-type'],
    contentEncoding: headers['content-encoding'],
    query: request.query as CaptureRequest['query'],
    ip: clientAddress(ip),
    isEngage,
  };
}

/** The newer form's answer: what became of each event, by the uuid that the client gave it. */
function v1Answer({ uuids, notices }: Handled): string {
  const results: Record<string, { result: 'ok' | 'drop'; details?: string }> = Object.create(null);
  for (const uuid of uuids) results[uuid] = { result: 'ok' };
  for (const { reason, detail } of notices.skipped) {
    if (typeof detail.uuid === 'string') results[detail.uuid] = { result: 'drop', details: reason };
  }
  return JSON.stringify({ results });
}

/** A public route that answers by itself; without a description it is left out of the documentation. */
export type AddRoute = (
  method: 'GET' | 'POST' | 'OPTIONS',
  path: string,
  handle: Handle,
  description?: Description,
) => void;

function eventRoutes(add: AddRoute, capture: Capture): void {
  const store =
    (isEngage: boolean): Handle =>
    async (incoming) => {
      await capture.handle(toCapture(incoming, isEngage));
      return (incoming.request.query as Record<string, unknown>).beacon === '1' ? EMPTY : OK;
    };
  const inQuery = { summary: 'Store events given as the query parameter data', answer: captured };
  for (const path of EVENT_PATHS) {
    const handle = store(path === '/engage/');
    add('POST', path, handle, { summary: 'Store an event', body: oneEvent, answer: captured });
    add('GET', path, handle, inQuery);
  }
  const summary = 'Store a batch of events';
  add('POST', BATCH_PATH, store(false), { summary, body: eventBatch, answer: captured });
  add('GET', BATCH_PATH, store(false), inQuery);
  const v1: Handle = async (incoming) => {
    const { request } = incoming;
    const sdk = request.headers['posthog-sdk-info'];
    const options = { sdk: typeof sdk === 'string' ? sdk : undefined, token: bearer(request) };
    const handled = await capture.handle({ ...toCapture(incoming, false), v1: options });
    return { status: 200, body: v1Answer(handled) };
  };
  const eachResult = 'Store events, with a result for each';
  add('POST', V1_PATH, v1, { summary: eachResult, body: v1Batch, answer: v1Results });
}

/** The public side for events: what clients ask before they send, and everything they send. */
export function captureRoutes(
  deps: ApiDependencies,
  more: { warnings: Warnings; keys: ProjectKeys; durations: DurationHistogram },
) {
  return async (app: App): Promise<void> => {
    const gate = new Gate();
    const bodies = new BodyPool();
    const { isPrepared, bodyIdleMilliseconds: idle } = deps;
    const exchanges = new Exchanges({ gate, bodies, durations: more.durations, isPrepared, idle });
    app.addHook('onClose', async () => exchanges.close());
    const metrics = createCaptureMetrics(deps.registry, gate);
    const capture = createCapture({
      ...more,
      ingest: deps.ingest,
      transform: deps.transform,
      metrics,
      gate,
      bodies,
    });
    // Only faults of ours are logged, so a logger for each request is not worth its making.
    app.setChildLoggerFactory((logger) => logger);
    const paths = new Set<string>();
    const add: AddRoute = (method, path, handle, description) => {
      paths.add(path);
      app.route({ method, url: path, ...publicRoute(exchanges.hook(path, handle), description) });
    };
    eventRoutes(add, capture);
    // Session recordings are not stored; an error would only make clients send them again.
    const noRecordings = 'Refuse session recordings';
    add('POST', RECORDING_PATH, () => NO_RECORDINGS, { summary: noRecordings, answer: freeForm });
    remoteConfigRoutes(add, capture, gate);
    for (const path of [...paths]) add('OPTIONS', path, preflight);
  };
}
