import { serialize } from 'node:v8';
import { uuidv7 } from '../../db/uuid.ts';
import type { Place } from '../../geoip/database.ts';
import { isObject } from '../../values/json-object.ts';
import { addPlaces } from '../add-places.ts';
import { openBody, toJson } from '../decode/decode.ts';
import { namesOf } from '../definitions/body-names.ts';
import { prepareAlone } from '../ingest/event-row.ts';
import { eventToken, InconsistentTokensError, readEnvelope } from '../parse/envelope.ts';
import { NoEventError, type Parsed, parseEvents, removeAddresses } from '../parse/parse.ts';
import type { BodyEvents, BodyProject, BodyRows, EventsJob, Opened, OpenJob, RowsJob } from './jobs.ts';
import { pack } from './rows.ts';

/** No project key is longer. The main thread refuses what was cut. */
const LONGEST_TOKEN = 1_000;
const EVENTS_OF_SLICE = 200;

/** A project key as the body gives it, without carrying along what cannot be one. */
function shown(token: unknown): unknown {
  if (typeof token === 'string') return token.slice(0, LONGEST_TOKEN);
  return token === undefined || token === null ? undefined : 0;
}

/** The key of the first event that names one. */
function firstToken(values: readonly unknown[]): unknown {
  for (const value of values) {
    const token = isObject(value) ? eventToken(value) : undefined;
    if (token !== undefined && token !== null) return token;
  }
  return undefined;
}

/** Finds the JSON of a body, and the project key in it. */
export async function open({ bytes, ...about }: OpenJob): Promise<Opened> {
  const wire = { ...about, bytes: Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength) };
  const { json, formToken, decoded } = await openBody(wire);
  const envelope = readEnvelope(decoded);
  const events = decoded.count ?? envelope.events.length;
  let token: unknown = envelope.token ?? undefined;
  if (events === 0) throw new NoEventError(token);
  if (token === undefined && decoded.chunks) {
    for await (const { values } of decoded.chunks()) {
      token = firstToken(values);
      if (token !== undefined) break;
    }
  } else token ??= firstToken(envelope.events);
  return { json: ownMemory(json), formToken, token: shown(token), events };
}

/** The bytes in memory of their own, which can be given to another thread. */
function ownMemory(bytes: Buffer): Uint8Array<ArrayBuffer> {
  const { buffer } = bytes;
  const isAlone = buffer instanceof ArrayBuffer && buffer.byteLength === bytes.byteLength;
  return isAlone ? new Uint8Array(buffer) : new Uint8Array(bytes);
}

/** All keys in a body must be the one whose project was found. */
function checkOf({ token }: BodyProject): (given: unknown) => string {
  return (given) => {
    if (typeof given !== 'string' || given.trim() !== token) throw new InconsistentTokensError();
    return token;
  };
}

async function parse({ json, formToken, context, project }: RowsJob | EventsJob): Promise<Parsed> {
  const decoded = await toJson(Buffer.from(json.buffer, json.byteOffset, json.byteLength));
  const own = { ...context, newUuid: uuidv7, checkToken: checkOf(project) };
  return parseEvents({ ...decoded, formToken }, own);
}

const about = ({ given, notices: { skipped, counts, skippedCount } }: Parsed) => ({
  given,
  notices: { skipped, counts, skippedCount },
});

/** Makes the rows of an opened body. */
export async function readRows(
  job: RowsJob,
  place: ((address: unknown) => Place | undefined) | undefined,
): Promise<BodyRows> {
  const { project } = job;
  const parsed = await parse(job);
  const { events, notices } = parsed;
  if (place) await addPlaces(place)(project, events, notices);
  if (project.anonymizeIps) removeAddresses(events);
  const prepared = { ...prepareAlone(project.id, events), names: namesOf(events) };
  return { ...about(parsed), rows: pack(prepared) };
}

/** Parses the events of an opened body. */
export async function readEvents(job: EventsJob): Promise<BodyEvents> {
  const parsed = await parse(job);
  const slices: ArrayBuffer[] = [];
  for (let at = 0; at < parsed.events.length; at += EVENTS_OF_SLICE) {
    const bytes = serialize(parsed.events.slice(at, at + EVENTS_OF_SLICE));
    slices.push(ownMemory(bytes).buffer);
  }
  return { ...about(parsed), slices };
}
