import { decodeBodyAtOnce } from '../../capture/decode/decode.ts';
import {
  NoEventError,
  type ParseContext,
  type Parsed,
  parseEventsAtOnce,
  removeAddresses,
} from '../../capture/parse/parse.ts';
import { checkToken, TokenError } from '../../capture/parse/token.ts';
import type { TransformEvents } from '../../capture/transform.ts';
import type { Warnings } from '../../capture/warnings.ts';
import type { CaptureProjectRow } from '../../db/projects.ts';
import { uuidv7 } from '../../db/uuid.ts';
import type { ApiDependencies } from '../dependencies.ts';
import type { ApiError } from '../errors.ts';
import type { Gate, Ticket } from './gate.ts';
import type { CaptureMetrics } from './metrics.ts';
import type { ProjectKeys } from './project-keys.ts';
import { toRefusal } from './refusals.ts';

/** A capture request, without the framework around it. */
export interface CaptureRequest {
  body: Buffer;
  ticket: Ticket;
  contentType: string | undefined;
  contentEncoding: string | undefined;
  query: Record<string, string | string[] | undefined>;
  ip: string | undefined;
  isEngage: boolean;
  v1?: { sdk: string | undefined; token: string | undefined };
}

export interface Capture {
  /** Stores the request's events; resolves when they are committed, rejects with the refusal. */
  handle(request: CaptureRequest): Promise<Parsed>;
  /** The project of a key, or a refusal with 401. */
  authenticate(token: unknown): Promise<CaptureProjectRow>;
}

const NOTHING = Buffer.alloc(0);

/** Of a parameter that comes several times, the last one. */
function one(value: string | string[] | undefined): string | undefined {
  return Array.isArray(value) ? value.at(-1) : value;
}

/** From bytes to committed events: the whole way of a capture request. */
export function createCapture(deps: {
  ingest: ApiDependencies['ingest'];
  keys: ProjectKeys;
  warnings: Warnings;
  metrics: CaptureMetrics;
  gate: Gate;
  transform: TransformEvents | undefined;
}): Capture {
  const { ingest, keys, warnings, metrics, gate, transform } = deps;

  function known(project: CaptureProjectRow | undefined): CaptureProjectRow {
    if (!project) throw new TokenError('API key is not valid: unknown');
    return project;
  }

  /** The project of a key, from memory mostly. */
  function find(given: unknown): CaptureProjectRow | Promise<CaptureProjectRow> {
    const found = keys.find(checkToken(given));
    return found instanceof Promise ? found.then(known) : known(found);
  }

  /** What went wrong, or that the key is wrong: whoever shows none learns nothing else of an empty request. */
  async function judge(error: unknown): Promise<unknown> {
    if (!(error instanceof NoEventError) || error.token === undefined) return toRefusal(error);
    try {
      await find(error.token);
      return toRefusal(error);
    } catch (refusal) {
      return toRefusal(refusal);
    }
  }

  async function process(request: CaptureRequest): Promise<Parsed> {
    const { query, ticket } = request;
    metrics.received(request.body.length);
    const decoding = decodeBodyAtOnce({
      bytes: request.body,
      contentType: request.contentType,
      contentEncoding: request.contentEncoding,
      compression: one(query.compression),
      data: one(query.data),
      admit: (bytes) => {
        metrics.decoded(bytes);
        return gate.enter(ticket, bytes);
      },
    });
    // Its memory is wanted while the events wait for their commit.
    request.body = NOTHING;
    const context: ParseContext = {
      now: Date.now(),
      ip: request.ip,
      newUuid: uuidv7,
      sentAt: one(query._),
      isEngage: request.isEngage,
      token: request.v1?.token ?? one(query.api_key) ?? one(query.token),
      expect: (events) => gate.expect(ticket, events),
    };
    if (request.v1) context.v1 = { sdk: request.v1.sdk };
    // Each promise that is not waited for is one turn less, for each of thousands of requests a second.
    const parsing = parseEventsAtOnce(decoding instanceof Promise ? await decoding : decoding, context);
    const parsed = parsing instanceof Promise ? await parsing : parsing;
    const found = find(parsed.token);
    const project = found instanceof Promise ? await found : found;
    let { events } = parsed;
    if (transform) {
      const transformed = transform(project.id, events);
      events = transformed instanceof Promise ? await transformed : transformed;
    }
    // Last, so that what follows from an address is known before the address is not.
    if (project.anonymize_ips) removeAddresses(events);
    if (events.length > 0) {
      const { notices } = await ingest.submit({ projectId: project.id, events });
      for (const one of notices ?? []) parsed.notices.notApplied(one.reason, one.index, one.detail);
    }
    warnings.add(project.id, parsed.notices, context.now);
    metrics.answered(parsed.events.length, parsed.notices);
    return parsed;
  }

  return {
    async authenticate(token) {
      try {
        return await find(token);
      } catch (error) {
        throw toRefusal(error);
      }
    },
    async handle(request) {
      try {
        return await process(request);
      } catch (error) {
        const refusal = await judge(error);
        metrics.refused((refusal as ApiError).status ?? 500);
        throw refusal;
      }
    },
  };
}
