import type { CapturedEvent } from '../../capture/captured-event.ts';
import { useBody } from '../../capture/decode/decode.ts';
import type { Submitted } from '../../capture/ingest.ts';
import { checkToken, TokenError } from '../../capture/parse/envelope.ts';
import { HistoricalMigrationError } from '../../capture/parse/historical.ts';
import type { Notices } from '../../capture/parse/notices.ts';
import {
  NoEventError,
  type ParseContext,
  type Parsed,
  parseEventsAtOnce,
  removeAddresses,
} from '../../capture/parse/parse.ts';
import type { TransformEvents } from '../../capture/transform.ts';
import type { Warnings } from '../../capture/warnings.ts';
import type { CaptureProjectRow } from '../../db/projects.ts';
import { uuidv7 } from '../../db/uuid.ts';
import type { ApiDependencies } from '../dependencies.ts';
import type { ApiError } from '../errors.ts';
import type { BodyPool } from './body-pool.ts';
import type { Gate, Ticket } from './gate.ts';
import type { CaptureMetrics } from './metrics.ts';
import type { ProjectKeys } from './project-keys.ts';
import { type CaptureQuery, lastOf } from './query.ts';
import { toRefusal } from './refusals.ts';

/** A capture request, without the framework around it. */
export interface CaptureRequest {
  body: Buffer;
  ticket: Ticket;
  contentType: string | undefined;
  contentEncoding: string | undefined;
  query: CaptureQuery;
  ip: string | undefined;
  isEngage: boolean;
  v1?: { sdk: string | undefined; token: string | undefined };
}

/** What became of a request's events. */
export interface Handled {
  /** Of those that were stored, as their client spelled them, in the newer form, which answers for each. */
  uuids: readonly string[];
  notices: Notices;
}

export interface Capture {
  /** Stores the request's events; resolves when they are committed, rejects with the refusal. */
  handle(request: CaptureRequest): Promise<Handled>;
  /** The project of a key, or a refusal with 401. */
  authenticate(token: unknown): Promise<CaptureProjectRow>;
}

const NOTHING = Buffer.alloc(0);

/** From bytes to committed events: the whole way of a capture request. */
export function createCapture(deps: {
  ingest: ApiDependencies['ingest'];
  keys: ProjectKeys;
  warnings: Warnings;
  metrics: CaptureMetrics;
  gate: Gate;
  bodies: BodyPool;
  transform: TransformEvents | undefined;
}): Capture {
  const { ingest, keys, warnings, metrics, gate, bodies, transform } = deps;

  function known(project: CaptureProjectRow | undefined): CaptureProjectRow {
    if (!project) throw new TokenError('API key is not valid: unknown');
    return project;
  }

  /** The project of a key, from memory mostly. */
  function find(given: unknown): CaptureProjectRow | Promise<CaptureProjectRow> {
    const found = keys.find(checkToken(given));
    return found instanceof Promise ? found.then(known) : known(found);
  }

  /** What went wrong, or that the key is wrong: whoever shows none is told nothing of a migration or an empty request. */
  async function judge(error: unknown): Promise<unknown> {
    const ofSomebody = error instanceof HistoricalMigrationError;
    if (!ofSomebody && !(error instanceof NoEventError && error.token !== undefined)) return toRefusal(error);
    try {
      await find(error.token);
      return toRefusal(error);
    } catch (refusal) {
      return toRefusal(refusal);
    }
  }

  /** The events of the bytes. Nothing that was made on the way, much more than the events, outlives this. */
  function read(request: CaptureRequest, now: number): Parsed | Promise<Parsed> {
    const { query, ticket, body } = request;
    const context: ParseContext = {
      now,
      ip: request.ip,
      newUuid: uuidv7,
      sentAt: lastOf(query._),
      isEngage: request.isEngage,
      token: request.v1?.token ?? lastOf(query.api_key) ?? lastOf(query.token),
      expect: (events) => gate.expect(ticket, events),
    };
    if (request.v1) context.v1 = { sdk: request.v1.sdk };
    const wire = {
      bytes: body,
      contentType: request.contentType,
      contentEncoding: request.contentEncoding,
      compression: lastOf(query.compression),
      data: lastOf(query.data),
      admit: (bytes: number) => {
        metrics.decoded(bytes);
        return gate.enter(ticket, bytes);
      },
    };
    request.body = NOTHING;
    return useBody(wire, (decoded) => {
      bodies.give(body);
      return parseEventsAtOnce(decoded, context);
    });
  }

  function submit(project: CaptureProjectRow, events: CapturedEvent[]): Promise<Submitted> | undefined {
    // Last, so that what follows from an address is known before the address is not.
    if (project.anonymize_ips) removeAddresses(events);
    return events.length > 0 ? ingest.submit({ projectId: project.id, events }) : undefined;
  }

  /** Hands the events over and lets go of them: until the commit, only what is still needed of them is to be kept. */
  function store(project: CaptureProjectRow, parsed: Parsed): Promise<Submitted | undefined> | undefined {
    const events = transform ? transform(project.id, parsed.events) : parsed.events;
    parsed.events = [];
    return events instanceof Promise
      ? events.then((transformed) => submit(project, transformed))
      : submit(project, events);
  }

  async function process(request: CaptureRequest): Promise<Handled> {
    metrics.received(request.body.length);
    const now = Date.now();
    // Each promise that is not waited for is one turn less, for each of thousands of requests a second.
    const reading = read(request, now);
    const parsed = reading instanceof Promise ? await reading : reading;
    const found = find(parsed.token);
    const project = found instanceof Promise ? await found : found;
    const { notices, given } = parsed;
    const count = parsed.events.length;
    const storing = store(project, parsed);
    const submitted = storing && (await storing);
    for (const one of submitted?.notices ?? []) notices.notApplied(one.reason, one.index, one.detail);
    warnings.add(project.id, notices, now);
    metrics.answered(count, notices);
    return { uuids: given, notices };
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
