import type { CapturedEvent } from '../../capture/captured-event.ts';
import { useBody } from '../../capture/decode/decode.ts';
import {
  DecodeError,
  LargeBodyError,
  MAX_BODY_BYTES,
  type RefusalReason,
} from '../../capture/decode/limits.ts';
import { EventsRefusedError, IngestUnavailableError, type Submitted } from '../../capture/ingest.ts';
import type { LargeBodies } from '../../capture/large/bodies.ts';
import { InconsistentTokensError } from '../../capture/parse/envelope.ts';
import { HistoricalMigrationError } from '../../capture/parse/historical.ts';
import { Notices, sample } from '../../capture/parse/notices.ts';
import {
  NoEventError,
  type ParseContext,
  type Parsed,
  parseEvents,
  removeAddresses,
} from '../../capture/parse/parse.ts';
import type { V1Headers } from '../../capture/parse/v1.ts';
import type { TransformEvents } from '../../capture/transform.ts';
import type { Warnings } from '../../capture/warnings.ts';
import type { PublicProjectRow } from '../../db/projects.ts';
import { uuidv7 } from '../../db/uuid.ts';
import { Refusal } from '../../refusals.ts';
import type { Logger } from '../../telemetry/logger.ts';
import { Quiet } from '../../telemetry/quiet.ts';
import type { ApiDependencies } from '../dependencies.ts';
import { ApiError, errors } from '../errors.ts';
import { lastOf, type Query } from '../public/exchange.ts';
import type { Gate, Ticket } from '../public/gate.ts';
import type { Lane } from '../public/lane.ts';
import { checkToken } from '../public/project-keys.ts';
import { bodyRefusal } from '../public/read-body.ts';
import type { CaptureMetrics } from './metrics.ts';

/** The memory that an event takes until it is committed, besides its own bytes. */
const EVENT_BYTES = 1024;
const NOTHING = Buffer.alloc(0);

/** Such a body has no event, so nothing is lost with it. */
const LOSES_NOTHING: ReadonlySet<RefusalReason> = new Set(['empty_body', 'no_event']);

/** A capture request without the framework around it. */
export interface CaptureRequest {
  body: Buffer;
  ticket: Ticket;
  contentType: string | undefined;
  contentEncoding: string | undefined;
  userAgent: string | undefined;
  query: Query;
  ip: string | undefined;
  isEngage: boolean;
  /** How many functions, one after the other, have led to the request. */
  depth: number;
  v1?: V1Headers & { token: string | undefined };
}

/** What became of a request's events. */
export interface Handled {
  /** The uuids of the stored events as their client spelled them. Only v1 requests have them. */
  uuids: readonly string[];
  notices: Notices;
}

/** Stores the request's events. Resolves when they are committed, rejects with the refusal. */
export type Capture = (request: CaptureRequest) => Promise<Handled>;

/** From bytes to committed events: the whole way of a capture request. */
export function createCapture(deps: {
  ingest: ApiDependencies['ingest'];
  transform: TransformEvents | undefined;
  /** Where large bodies are decoded and parsed. Without it, this thread does it. */
  largeBodies: LargeBodies | undefined;
  warnings: Warnings;
  metrics: CaptureMetrics;
  lane: Pick<Lane, 'keys' | 'bodies'>;
  gate: Gate;
  log: Pick<Logger, 'warn'>;
}): Capture {
  const { ingest, transform, largeBodies, warnings, metrics, gate, log } = deps;
  const { keys, bodies } = deps.lane;
  const quiet = new Quiet();

  /**
   * The refusal of an error. Some errors tell about a project's events: they are told only to a client that shows the
   * key of a project, and any other client gets 401.
   */
  async function judge(error: unknown, { ip }: CaptureRequest): Promise<unknown> {
    const needsKey =
      error instanceof HistoricalMigrationError ||
      (error instanceof NoEventError && error.token !== undefined);
    if (!needsKey) return toRefusal(error);
    try {
      await keys.authenticate(error.token, ip);
      return toRefusal(error);
    } catch (refusal) {
      return refusal;
    }
  }

  const contextOf = (request: CaptureRequest, now: number): ParseContext => ({
    now,
    ip: request.ip,
    newUuid: uuidv7,
    checkToken,
    sentAt: lastOf(request.query._),
    isEngage: request.isEngage,
    depth: request.depth,
    token: tokenOf(request),
    expect: (events) => gate.expect(request.ticket, events * EVENT_BYTES),
    ...(request.v1 ? { v1: request.v1 } : {}),
  });

  const describe = ({ query, contentType, contentEncoding }: CaptureRequest) => ({
    contentType,
    contentEncoding,
    compression: lastOf(query.compression),
    data: lastOf(query.data),
  });

  /**
   * Reads the events out of the bytes. What is made on the way is much larger than the events, and does not outlive this.
   * Leaves a large body where it is, and returns undefined.
   */
  function read(request: CaptureRequest, now: number): Parsed | undefined | Promise<Parsed | undefined> {
    const { ticket, body } = request;
    const context = contextOf(request, now);
    const wire = {
      bytes: body,
      ...describe(request),
      admit: (bytes: number) => {
        metrics.decoded(bytes);
        return gate.enter(ticket, bytes);
      },
      memory: gate.memoryOf(ticket),
      onlySmall: largeBodies !== undefined,
    };
    const keepLarge = (error: unknown): undefined => {
      if (!(error instanceof LargeBodyError)) throw error;
      request.body = body;
    };
    request.body = NOTHING;
    try {
      const parsed = useBody(wire, (decoded) => {
        bodies.give(body);
        return parseEvents(decoded, context);
      });
      return parsed instanceof Promise ? parsed.catch(keepLarge) : parsed;
    } catch (error) {
      return keepLarge(error);
    }
  }

  function submit(project: PublicProjectRow, events: CapturedEvent[]): Promise<Submitted> | undefined {
    // The transformation before this may need the addresses.
    if (project.anonymize_ips) removeAddresses(events);
    return events.length > 0 ? ingest.submit({ projectId: project.id, events }) : undefined;
  }

  /** Hands the events over and lets go of them, so that their values need not wait in memory for the commit. */
  function store(
    project: PublicProjectRow,
    parsed: Pick<Parsed, 'events' | 'notices'>,
    ticket: Ticket,
  ): Promise<Submitted | undefined> | undefined {
    const { id, transformations } = project;
    const known = { id, transformations, bytes: ticket.bytes };
    const events = transform ? transform(known, parsed.events, parsed.notices) : parsed.events;
    parsed.events = [];
    // Transformations that take long have limits of their own. The bodies of others do not wait for them.
    if (events instanceof Promise) gate.leave(ticket);
    return events instanceof Promise
      ? events.then((transformed) => submit(project, transformed))
      : submit(project, events);
  }

  async function process(request: CaptureRequest): Promise<Handled> {
    metrics.received(request.body.length);
    const now = Date.now();
    // With thousands of requests a second, each promise that is not awaited saves a turn for each of them.
    const reading = read(request, now);
    const parsed = reading instanceof Promise ? await reading : reading;
    if (!parsed) return processLarge(largeBodies as LargeBodies, request, now);
    const found = keys.authenticate(parsed.token, request.ip);
    const project = found instanceof Promise ? await found : found;
    const count = parsed.events.length;
    const storing = store(project, parsed, request.ticket);
    return handled(project, parsed, count, storing && (await storing), now);
  }

  /** Has a large body read by another thread, once its key has been found to be that of a project. */
  async function processLarge(large: LargeBodies, request: CaptureRequest, now: number): Promise<Handled> {
    const { body, ticket, ip } = request;
    request.body = NOTHING;
    await gate.unpack(ticket);
    gate.grow(ticket, MAX_BODY_BYTES - ticket.unpacked);
    const opening = large.open({ bytes: body, ...describe(request) });
    bodies.give(body);
    const opened = await opening;
    const size = opened.json.byteLength;
    metrics.decoded(size);
    await gate.enter(ticket, size);
    const project = await keys.authenticate(opened.token ?? tokenOf(request), ip);
    const { newUuid: _, checkToken: check, expect, ...context } = contextOf(request, now);
    expect?.(opened.events);
    const { id, anonymize_ips: anonymizeIps } = project;
    const token = check(opened.token ?? context.token);
    const task = { context, project: { id, token, anonymizeIps } };
    if (transform && project.transformations !== null) {
      const parsed = await large.events(opened, task);
      const count = parsed.events.length;
      return handled(project, parsed, count, await store(project, parsed, ticket), now);
    }
    const read = await large.rows(opened, task);
    const count = read.prepared.events.length;
    return handled(
      project,
      read,
      count,
      await ingest.submit({ projectId: id, prepared: read.prepared }),
      now,
    );
  }

  /** Tells what became of the events. */
  function handled(
    project: PublicProjectRow,
    { notices, given }: Pick<Parsed, 'notices' | 'given'>,
    count: number,
    submitted: Submitted | undefined,
    now: number,
  ): Handled {
    for (const one of submitted?.notices ?? []) notices.notApplied(one.reason, one.index, one.detail);
    warnings.add(project.id, notices, now);
    metrics.answered(count, notices);
    return { uuids: given, notices };
  }

  /**
   * Counts and logs a body that is refused, and shows it to the project whose key the request gives. Clients do not send
   * such a body again, so its events are lost.
   */
  async function tellRefusedBody(error: DecodeError, request: CaptureRequest, bytes: number): Promise<void> {
    const { reason } = error;
    metrics.refusedBody(reason);
    gate.leave(request.ticket);
    if (LOSES_NOTHING.has(reason)) return;
    const about = {
      content_encoding: sample(request.contentEncoding),
      content_type: sample(request.contentType),
      user_agent: sample(request.userAgent),
      bytes,
    };
    const project = await projectOf(error.token ?? tokenOf(request), request.ip);
    quiet.tell((untold) =>
      log.warn({ reason, project_id: project?.id, ...about, untold }, 'capture refused a body'),
    );
    if (!project) return;
    const notices = new Notices();
    notices.refused(reason, { detail: sample(error.message), ...about });
    warnings.add(project.id, notices, Date.now());
  }

  /** The project of a key that only helps to tell something. Undefined if no project is found, whatever the cause. */
  async function projectOf(token: unknown, ip: string | undefined): Promise<PublicProjectRow | undefined> {
    if (token === undefined) return undefined;
    try {
      return await keys.authenticate(token, ip);
    } catch {
      return undefined;
    }
  }

  return async (request) => {
    const bytes = request.body.length;
    try {
      return await process(request);
    } catch (error) {
      if (error instanceof DecodeError) await tellRefusedBody(error, request, bytes);
      const refusal = await judge(error, request);
      metrics.refused((refusal as ApiError).status ?? 500);
      throw refusal;
    }
  };
}

/** The project key that the request gives outside of its body. */
function tokenOf({ v1, query }: CaptureRequest): string | undefined {
  return v1?.token ?? lastOf(query.api_key) ?? lastOf(query.token);
}

/** Turns an error of capture into a refusal. Clients send again only after 408, 413 (in halves), 429 and 5xx. */
function toRefusal(error: unknown): unknown {
  if (error instanceof DecodeError) return bodyRefusal(error.status, error.message);
  if (error instanceof InconsistentTokensError) return errors.authenticationFailed(error.message);
  if (error instanceof HistoricalMigrationError) {
    return new ApiError(400, {
      type: 'validation_error',
      code: 'historical_migration',
      detail: error.message,
      attr: 'batch',
      errors: [...error.offences],
    });
  }
  if (error instanceof IngestUnavailableError) {
    return errors.unavailable(error.message, error.retryAfterSeconds);
  }
  if (error instanceof Refusal) return errors.unavailable(error.message, error.retrySeconds);
  if (error instanceof EventsRefusedError) return errors.validation('invalid_input', error.message, null);
  return error;
}
