import { parseMoment } from './timestamp.ts';

type Fields = Record<string, unknown>;

/** What a request of the newer form says outside of its body. */
export interface V1Headers {
  /** `PostHog-Sdk-Info`: the client, as `name/version`. */
  sdk: string | undefined;
  /** `PostHog-Request-Timestamp`: when this attempt was sent, by the client's clock. */
  sentAt?: string | undefined;
}

const LONGEST_SDK = 256;

/** The name and version of a client. The name may contain slashes. Undefined if one of them is missing. */
function readSdk(header: string | undefined): { name: string; version: string } | undefined {
  if (header === undefined || header.length > LONGEST_SDK) return undefined;
  const slash = header.lastIndexOf('/');
  const [name, version] = [header.slice(0, Math.max(slash, 0)).trim(), header.slice(slash + 1).trim()];
  return name === '' || version === '' ? undefined : { name, version };
}

/**
 * When the client sent the request, by its own clock. A client that sends a batch again keeps `created_at`, so only the
 * header tells how far the clock is off. Without the header, `created_at` is the best there is.
 */
export function v1SentAt({ sentAt }: V1Headers, createdAt: unknown): unknown {
  return Number.isNaN(parseMoment(sentAt)) ? createdAt : sentAt;
}

const WORDS = new Map([
  ['true', true],
  ['1', true],
  ['false', false],
  ['0', false],
]);

function asBoolean(value: unknown): boolean | undefined {
  if (typeof value === 'boolean') return value;
  if (typeof value === 'number') return value !== 0;
  return typeof value === 'string' ? WORDS.get(value.trim().toLowerCase()) : undefined;
}

function asId(value: unknown): string | undefined {
  if (typeof value === 'string') return value;
  return Number.isInteger(value) ? String(value) : undefined;
}

interface Option {
  property: string;
  read: (value: unknown) => unknown;
}

const OPTIONS = new Map<string, Option>([
  ['cookieless_mode', { property: '$cookieless_mode', read: asBoolean }],
  ['disable_skew_correction', { property: '$ignore_sent_at', read: asBoolean }],
  ['process_person_profile', { property: '$process_person_profile', read: asBoolean }],
  ['product_tour_id', { property: '$product_tour_id', read: asId }],
]);
const FIELDS = new Map([
  ['session_id', '$session_id'],
  ['window_id', '$window_id'],
]);

const isGiven = (value: unknown) => value !== undefined && value !== null;

/**
 * Moves options, session, window and client of the newer form of event into its properties, where the other forms have
 * them. So the stored event does not depend on the form. They win over properties of the same name. Returns the names of
 * options that cannot be read.
 */
export function fromV1(event: Fields, { sdk }: V1Headers): string[] {
  if (!isGiven(event.properties)) event.properties = {};
  const properties = event.properties as Fields;
  if (typeof properties !== 'object' || Array.isArray(properties)) return [];
  for (const [field, property] of FIELDS) {
    if (isGiven(event[field])) properties[property] = event[field];
  }
  const client = readSdk(sdk);
  if (client) Object.assign(properties, { $lib: client.name, $lib_version: client.version });
  return readOptions(event.options, properties);
}

function readOptions(options: unknown, properties: Fields): string[] {
  if (!isGiven(options)) return [];
  if (typeof options !== 'object' || Array.isArray(options)) return ['options'];
  const unreadable: string[] = [];
  for (const [name, { property, read }] of OPTIONS) {
    const given = (options as Fields)[name];
    if (!isGiven(given)) continue;
    const value = read(given);
    if (value === undefined) unreadable.push(name);
    else properties[property] = value;
  }
  return unreadable;
}
