import { MAX_BODY_BYTES, tooLarge } from '../../capture/decode/limits.ts';
import type { Warnings } from '../../capture/warnings.ts';
import { clientAddress } from '../../values/clients.ts';
import { depthOfRequest } from '../../values/function-depth.ts';
import type { ApiDependencies } from '../dependencies.ts';
import { freeForm } from '../fields.ts';
import type { Answer } from '../public/answer.ts';
import type { LaneRequest } from '../public/direct.ts';
import type { Handle, Incoming } from '../public/exchange.ts';
import type { AddRoute, Lane, LaneMember } from '../public/lane.ts';
import { type Capture, type CaptureRequest, createCapture, type Handled } from './capture.ts';
import { captured, eventBatch, oneEvent, v1Batch, v1Results } from './event-schema.ts';
import { createCaptureMetrics } from './metrics.ts';

const MIB = 1024 * 1024;
const MEMBER: LaneMember = {
  name: 'capture',
  tag: 'capture',
  share: { held: 160 * MIB, atWork: 12 * MIB, unpacking: 2 },
  largestBody: { bytes: MAX_BODY_BYTES, refusal: tooLarge('the body').message },
};
const NOTHING = Buffer.alloc(0);
const OK: Answer = { status: 200, body: '{"status":"Ok"}' };
const EMPTY: Answer = { status: 204, body: '' };
/** Makes the client stop recording, as if its quota of recordings were used up. */
const NO_RECORDINGS: Answer = { status: 200, body: '{"status":"Ok","quota_limited":["recordings"]}' };

/** Clients of the last years send events to these paths. Every form of a body is accepted at each of them. */
const EVENT_PATHS = ['/i/v0/e/', '/e/', '/capture/', '/track/', '/engage/'];
const BATCH_PATH = '/batch/';
const V1_PATH = '/i/v1/analytics/events';
const RECORDING_PATH = '/s/';

/** The key of `Authorization: Bearer …`. Clients spell the scheme in any case. */
function bearer(request: LaneRequest): string | undefined {
  return /^Bearer\s+(\S+)\s*$/i.exec(request.headers.authorization ?? '')?.[1];
}

function header({ headers }: LaneRequest, name: string): string | undefined {
  const value = headers[name];
  return typeof value === 'string' ? value : undefined;
}

/** Takes the body out of `incoming`, which lives until the commit. */
function toCapture(incoming: Incoming, isEngage: boolean): CaptureRequest {
  const { request, body, ticket } = incoming;
  const { ip, headers } = request;
  incoming.body = NOTHING;
  return {
    body,
    ticket,
    contentType: headers['content-type'],
    contentEncoding: headers['content-encoding'],
    userAgent: headers['user-agent'],
    query: request.query as CaptureRequest['query'],
    ip: clientAddress(ip),
    isEngage,
    depth: depthOfRequest(headers),
  };
}

/** The answer of the v1 path: what became of each event, by the uuid that the client gave it. */
function v1Answer({ uuids, notices }: Handled): string {
  const results: Record<string, { result: 'ok' | 'drop'; details?: string }> = Object.create(null);
  for (const uuid of uuids) results[uuid] = { result: 'ok' };
  for (const { reason, detail } of notices.skipped) {
    if (typeof detail.uuid === 'string') results[detail.uuid] = { result: 'drop', details: reason };
  }
  return JSON.stringify({ results });
}

function eventRoutes(add: AddRoute, capture: Capture): void {
  const store =
    (isEngage: boolean): Handle =>
    async (incoming) => {
      await capture(toCapture(incoming, isEngage));
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
    const options = {
      sdk: header(request, 'posthog-sdk-info'),
      sentAt: header(request, 'posthog-request-timestamp'),
      token: bearer(request),
    };
    const handled = await capture({ ...toCapture(incoming, false), v1: options });
    return { status: 200, body: v1Answer(handled) };
  };
  const eachResult = 'Store events, with a result for each';
  add('POST', V1_PATH, v1, { summary: eachResult, body: v1Batch, answer: v1Results });
}

/** Everything that clients send to store events. */
export function captureRoutes(
  lane: Lane,
  deps: Pick<ApiDependencies, 'ingest' | 'transform' | 'largeBodies' | 'registry' | 'logger'> & {
    warnings: Warnings;
  },
): void {
  const { ingest, transform, largeBodies, warnings } = deps;
  const { gate, add } = lane.join(MEMBER);
  const metrics = createCaptureMetrics(deps.registry, gate);
  const kinds = { ingest, transform, largeBodies, warnings, metrics, lane, gate };
  eventRoutes(add, createCapture({ ...kinds, log: deps.logger }));
  // Session recordings are not stored. An error would only make clients send them again.
  const summary = 'Refuse session recordings';
  add('POST', RECORDING_PATH, () => NO_RECORDINGS, { summary, answer: freeForm });
}
