import { nextTurn } from '../../db/loop-turns.ts';
import { MOST_DEPTH, withLeastDepth } from '../../values/function-depth.ts';
import { cleanValue } from '../../values/texts.ts';
import type { CapturedEvent } from '../captured-event.ts';
import { type Decoded, Unparsed } from '../decode/json.ts';
import { DecodeError, inCircle, MAX_EVENTS, tooMany } from '../decode/limits.ts';
import type { Obstacle } from '../decode/outline.ts';
import {
  type Envelope,
  eventToken,
  InconsistentTokensError,
  readEnvelope,
  rootToken,
  typeName,
} from './envelope.ts';
import {
  chainElements,
  liftSets,
  limitPersonChanges,
  markCookieless,
  readDistinctId,
  readName,
  readProperties,
  readUuid,
} from './event.ts';
import { HistoricalCheck, historicalOffence } from './historical.ts';
import { Notices, sample } from './notices.ts';
import { type Clocks, readSentAt, resolveTimestamp } from './timestamp.ts';
import { fromV1, type V1Headers, v1SentAt } from './v1.ts';

/** What parsing needs besides the body. */
export interface ParseContext {
  /** When the request came in, in milliseconds. */
  now: number;
  /** The client's address. */
  ip: string | undefined;
  newUuid: () => string;
  /** Returns a project key in its usual spelling, or throws the refusal of what cannot be one. */
  checkToken: (given: unknown) => string;
  /** The query's `_`: when the client sent the request, by its own clock. */
  sentAt?: string | undefined;
  /** On `/engage`, an event without a name is `$identify`. */
  isEngage?: boolean;
  /** Set for the newer form, with options outside of the properties and the time of sending in a header. */
  v1?: V1Headers;
  /** A project key from outside of the body: bearer token or query. */
  token?: string | undefined;
  /** How many functions, one after the other, have led to the request. */
  depth?: number;
  /** Called with the number of events, before they are created. */
  expect?: (events: number) => void;
}

export interface Parsed {
  token: string;
  events: CapturedEvent[];
  notices: Notices;
  /** Only for the newer form: the uuids of the events, as the client spelled them. */
  given: readonly string[];
}

/** The request has no event. Its project key must be checked before the client is told so. */
export class NoEventError extends DecodeError {
  constructor(token: unknown) {
    super('no_event', 'request holds no event');
    this.token = token;
  }
}

type Fields = Record<string, unknown>;

/** Why an event is left out that was not parsed. */
const OBSTACLES = { 'too deep': 'nested_too_deep', 'too many values': 'too_many_values' } as const;

/** Adds the client's own uuid, by which the client finds the event in its logs and in the answer of the v1 form. */
function withUuid(detail: Fields, { uuid }: Fields): Fields {
  return typeof uuid === 'string' && uuid !== '' ? { ...detail, uuid: sample(uuid) } : detail;
}

/** Turns the events of one request into CapturedEvents, in order and chunk by chunk. */
class EventParser {
  readonly events: CapturedEvent[] = [];
  readonly notices = new Notices();
  readonly #given: string[] = [];
  readonly #envelope: Envelope;
  readonly #context: ParseContext;
  readonly #clocks: Clocks;
  readonly #migration = new HistoricalCheck();
  #token: string | undefined;
  #index = 0;

  constructor(envelope: Envelope, context: ParseContext) {
    this.#envelope = envelope;
    this.#context = context;
    // The times of past events do not come from the clock of the sending machine, so they need no correction.
    const sentAt = envelope.historical ? undefined : readSentAt(envelope.sentAt, context.sentAt);
    this.#clocks = { now: context.now, sentAt };
    const token = envelope.token ?? context.token;
    if (token !== undefined && token !== null) this.#token = context.checkToken(token);
  }

  add(values: unknown[], mayNeedCleaning: boolean): void {
    const ownToken = this.#envelope.token === undefined && this.#context.token === undefined;
    for (const value of values) {
      const index = this.#index;
      this.#index += 1;
      if (typeof value !== 'object' || value === null || Array.isArray(value)) {
        this.#refuse('not_an_object', index, { found: typeName(value) });
      } else if (value instanceof Unparsed) {
        this.#refuse(OBSTACLES[value.obstacle], index, {});
      } else {
        if (ownToken) this.#agree(eventToken(value as Fields));
        this.#read(value as Fields, index, mayNeedCleaning);
      }
    }
  }

  finish(): Parsed {
    if (this.#index === 0) throw new NoEventError(this.#token);
    this.#migration.finish(this.#index, this.#token);
    const token = this.#context.checkToken(this.#token);
    return { token, events: this.events, notices: this.notices, given: this.#given };
  }

  #agree(value: unknown): void {
    if (value === undefined || value === null) return;
    const token = this.#context.checkToken(value);
    this.#token ??= token;
    if (token !== this.#token) throw new InconsistentTokensError();
  }

  /**
   * Leaves an unusable event out. A request that consists of this event alone is refused, and so is a historical
   * migration.
   */
  #refuse(
    reason: 'not_an_object' | (typeof OBSTACLES)[Obstacle] | 'properties_not_an_object',
    index: number,
    detail: Fields,
  ): void {
    if (this.#envelope.single) {
      throw new DecodeError(
        'invalid_request',
        `failed to parse request: the event is not usable: ${reason.replaceAll('_', ' ')} ${JSON.stringify(detail)}`,
      );
    }
    if (this.#envelope.historical) this.#migration.note(index, reason.replaceAll('_', ' '));
    this.notices.skip(reason, index, detail);
  }

  #read(event: Fields, index: number, mayNeedCleaning: boolean): void {
    const { now, ip, newUuid, isEngage, v1, depth = 0 } = this.#context;
    const { historical } = this.#envelope;
    const cleaned = mayNeedCleaning ? cleanValue(event).changed : 0;
    const unreadable = v1 ? fromV1(event, v1) : [];
    const properties = readProperties(event);
    if (properties === undefined) {
      const detail = { event: sample(event.event), found: typeName(event.properties) };
      this.#refuse('properties_not_an_object', index, withUuid(detail, event));
      return;
    }
    const name = readName(event, isEngage === true);
    const distinctId = readDistinctId(event, properties);
    if (historical) {
      const offence = historicalOffence(event.timestamp, distinctId.text !== undefined, now);
      if (offence !== undefined) this.#migration.note(index, offence);
    }
    if (name.text === undefined) {
      this.notices.skip(
        'missing_event_name',
        index,
        withUuid({ distinct_id: sample(distinctId.text) }, event),
      );
      return;
    }
    if (distinctId.text === undefined) {
      this.notices.skip('missing_distinct_id', index, withUuid({ event: sample(name.text) }, event));
      return;
    }
    const given = readUuid(event.uuid);
    const uuid = given || newUuid();
    if (v1) this.#given.push(typeof event.uuid === 'string' && event.uuid ? event.uuid : uuid);
    const moment = resolveTimestamp(
      {
        timestamp: event.timestamp,
        // A historical migration keeps exactly the time that was checked.
        offset: historical ? undefined : event.offset,
        ignoreSentAt: properties.$ignore_sent_at === true,
      },
      this.#clocks,
    );
    liftSets(event, properties);
    if (properties.$elements !== undefined) chainElements(properties);
    markCookieless(name.text, distinctId.text, properties);
    const profile = limitPersonChanges(name.text, properties);
    if (ip !== undefined && (properties.$ip === undefined || properties.$ip === null)) {
      properties.$ip = properties.capture_internal ? '127.0.0.1' : ip;
    }
    this.events.push({
      index,
      uuid,
      event: name.text,
      distinct_id: distinctId.text,
      // Imported events trigger no function.
      properties: historical ? properties : withLeastDepth(properties, depth),
      timestamp: moment.milliseconds,
      received_at: now,
      ip,
      historical,
    });
    if (cleaned > 0) this.notices.changed('text_cleaned', index, this.#about(name.text, distinctId.text));
    if (given === false) {
      this.notices.changed('invalid_uuid_replaced', index, {
        event: name.text,
        uuid: sample(event.uuid),
      });
    }
    if (unreadable.length > 0) {
      this.notices.changed('option_unreadable', index, { event: name.text, options: unreadable });
    }
    if (profile !== undefined) {
      this.notices.changed('process_person_profile_unreadable', index, {
        event: name.text,
        $process_person_profile: sample(profile),
      });
    }
    if (name.truncated) this.notices.changed('event_name_truncated', index, { event: name.text });
    if (distinctId.truncated) {
      this.notices.changed('distinct_id_truncated', index, this.#about(name.text, distinctId.text));
    }
    if (moment.problem !== undefined) {
      this.notices.changed(moment.problem, index, { event: name.text, timestamp: sample(event.timestamp) });
    }
  }

  #about(event: string, distinctId: string): Fields {
    return { event, distinct_id: distinctId };
  }
}

/**
 * Parses the events of a decoded body. The notices say which events are missing or changed. The answer is a promise only
 * for a body that is parsed in chunks.
 */
export function parseEvents(decoded: Decoded, context: ParseContext): Parsed | Promise<Parsed> {
  const named = (error: unknown): never => {
    if (error instanceof DecodeError) error.token ??= rootToken(decoded) ?? context.token;
    throw error;
  };
  try {
    const parsed = parseAll(decoded, context);
    return parsed instanceof Promise ? parsed.catch(named) : parsed;
  } catch (error) {
    return named(error);
  }
}

function parseAll(decoded: Decoded, context: ParseContext): Parsed | Promise<Parsed> {
  const envelope = readEnvelope(decoded);
  if (context.v1) envelope.sentAt = v1SentAt(context.v1, (decoded.root as Fields).created_at);
  if ((context.depth ?? 0) > MOST_DEPTH && !envelope.historical) throw inCircle();
  const parser = new EventParser(envelope, context);
  const events = decoded.count ?? envelope.events.length;
  if (events > MAX_EVENTS) throw tooMany(events);
  context.expect?.(events);
  if (decoded.chunks) return parseChunks(decoded, decoded.chunks, parser);
  parser.add(envelope.events, decoded.mayNeedCleaning);
  return decoded.isLarge ? nextTurn().then(() => finish(decoded, parser)) : finish(decoded, parser);
}

async function parseChunks(
  decoded: Decoded,
  chunks: NonNullable<Decoded['chunks']>,
  parser: EventParser,
): Promise<Parsed> {
  for await (const { values, mayNeedCleaning } of chunks()) parser.add(values, mayNeedCleaning);
  await nextTurn();
  return finish(decoded, parser);
}

function finish(decoded: Decoded, parser: EventParser): Parsed {
  const parsed = parser.finish();
  const [first] = parsed.events;
  if (decoded.invalidUtf8 && first) {
    parsed.notices.changed('invalid_utf8_replaced', 0, {
      event: first.event,
      distinct_id: first.distinct_id,
    });
  }
  return parsed;
}

/** Removes addresses from events, for projects that anonymize them. */
export function removeAddresses(events: CapturedEvent[]): void {
  for (const event of events) {
    event.ip = undefined;
    delete event.properties.$ip;
  }
}
