import type { FlagRequest } from '../../flags/evaluator.ts';
import { ExactNumber, isExactObject } from '../../values/exact-json.ts';
import { FlagBodyError } from './decode.ts';

/** What a client says in its body, checked. */
export interface FlagBody {
  token: string | undefined;
  /** Undefined: the body has none. It may be empty. */
  distinctId: string | undefined;
  disableFlags: boolean;
  geoipDisable: boolean;
  runtime: 'all' | 'client' | 'server' | undefined;
  request: Omit<FlagRequest, 'distinctId' | 'place' | 'runtime' | 'surveysOnly'>;
}

type Fields = Record<string, unknown>;

const LONGEST_ID = 200;

const wrong = (field: string, wanted: string) =>
  new FlagBodyError(
    `Failed to decode request: invalid JSON: ${field} must be ${wanted}. Please check your request format and try again.`,
  );

/** The first of the names of a field that the body has. */
function given(body: Fields, ...names: string[]): unknown {
  for (const name of names) {
    if (Object.hasOwn(body, name) && body[name] !== null) return body[name];
  }
  return undefined;
}

/** Texts, and numbers as they were spelled. */
function textIn(value: unknown, field: string): string | undefined {
  if (value === undefined || typeof value === 'string') return value;
  if (typeof value === 'number' || value instanceof ExactNumber) return String(value);
  throw wrong(field, 'a string or a number');
}

function plainTextIn(value: unknown, field: string): string | undefined {
  if (value === undefined || typeof value === 'string') return value;
  throw wrong(field, 'a string');
}

function recordIn(value: unknown, field: string): Fields {
  if (value === undefined) return {};
  if (isExactObject(value)) return value;
  throw wrong(field, 'an object');
}

function flagIn(value: unknown, field: string): boolean {
  if (value === undefined) return false;
  if (typeof value === 'boolean') return value;
  throw wrong(field, 'true or false');
}

function textsIn(value: unknown, field: string): string[] | undefined {
  if (value === undefined) return undefined;
  if (Array.isArray(value) && value.every((one) => typeof one === 'string')) return value;
  throw wrong(field, 'a list of strings');
}

/** Where the client says that it runs. What it calls otherwise than we do counts as everywhere. */
function runtimeIn(value: unknown): FlagBody['runtime'] {
  const runtime = plainTextIn(value, 'evaluation_runtime')?.toLowerCase();
  return runtime === undefined || runtime === 'client' || runtime === 'server' ? runtime : 'all';
}

/** The device of a client. An empty id is none. */
function deviceIn(body: Fields, personProperties: Fields): string {
  const own = textIn(given(body, '$device_id', 'device_id'), 'device_id');
  if (own) return own;
  const stated = Object.hasOwn(personProperties, '$device_id') ? personProperties.$device_id : undefined;
  return typeof stated === 'string' ? stated : '';
}

/** Cuts an id by characters, not by halves of surrogate pairs. */
function cut(id: string): string {
  // Capture stores ids so, because Postgres has no such character.
  const storable = id.includes('\0') ? id.replaceAll('\0', '\uFFFD') : id;
  return storable.length <= LONGEST_ID ? storable : Array.from(storable).slice(0, LONGEST_ID).join('');
}

const storableKey = (key: string): string => (key.includes('\0') ? key.replaceAll('\0', '\uFFFD') : key);

/** The keys of groups. A key that is neither a text nor a number names no group. */
function groupsIn(value: unknown): Record<string, string> {
  const groups: Record<string, string> = {};
  for (const [type, key] of Object.entries(recordIn(value, 'groups'))) {
    if (typeof key !== 'string' && typeof key !== 'number' && !(key instanceof ExactNumber)) continue;
    Object.defineProperty(groups, type, { value: storableKey(String(key)), enumerable: true });
  }
  return groups;
}

function groupPropertiesIn(value: unknown): Record<string, Fields> {
  const properties = recordIn(value, 'group_properties');
  for (const [type, one] of Object.entries(properties)) {
    if (!isExactObject(one)) throw wrong(`group_properties.${type}`, 'an object');
  }
  return properties as Record<string, Fields>;
}

/** Checks the fields of a body. Unknown ones are ignored, and one of a wrong type refuses the body. */
export function readFlagBody(body: unknown): FlagBody {
  if (!isExactObject(body)) throw wrong('the body', 'an object');
  const personProperties = recordIn(given(body, 'person_properties', '$properties'), 'person_properties');
  const distinctId = textIn(given(body, 'distinct_id', '$distinct_id'), 'distinct_id');
  return {
    token: plainTextIn(given(body, 'token', 'api_key', '$token'), 'token'),
    distinctId: distinctId === undefined ? undefined : cut(distinctId),
    disableFlags: flagIn(given(body, 'disable_flags'), 'disable_flags'),
    geoipDisable: flagIn(given(body, 'geoip_disable'), 'geoip_disable'),
    runtime: runtimeIn(given(body, 'evaluation_runtime')),
    request: {
      anonDistinctId: cut(
        textIn(given(body, '$anon_distinct_id', 'anon_distinct_id'), '$anon_distinct_id') ?? '',
      ),
      deviceId: deviceIn(body, personProperties),
      groups: groupsIn(given(body, 'groups', '$groups')),
      personProperties,
      groupProperties: groupPropertiesIn(given(body, 'group_properties', '$group_properties')),
      keys: textsIn(given(body, 'flag_keys', 'flag_keys_to_evaluate'), 'flag_keys'),
      contexts: textsIn(given(body, 'evaluation_contexts', 'evaluation_environments'), 'evaluation_contexts'),
    },
  };
}

const BROWSERS = /(?:Mozilla|Chrome|Safari|Firefox|Edge)\//;
const SERVERS = /(?:posthog-(?:python|ruby|php|java|go|node|dotnet|elixir)|python-requests|curl)\//;
const APPS = /posthog-(?:android|ios|react-native|flutter)\//;

/** Where a request comes from, by what it says of itself. Undefined: it does not say. */
export function runtimeOf(
  headers: Readonly<Record<string, string | string[] | undefined>>,
): 'client' | 'server' | undefined {
  const agent = String(headers['user-agent'] ?? '');
  if (BROWSERS.test(agent)) return 'client';
  if (SERVERS.test(agent)) return 'server';
  if (APPS.test(agent)) return 'client';
  const isPage = ['origin', 'referer', 'sec-fetch-mode', 'sec-fetch-site'].some(
    (name) => headers[name] !== undefined,
  );
  return isPage ? 'client' : undefined;
}
