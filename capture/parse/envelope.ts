import { isObject } from '../../values/json-object.ts';
import type { Decoded } from '../decode/json.ts';
import { DecodeError } from '../decode/limits.ts';

type Fields = Record<string, unknown>;

/** The events of one request name different project keys. */
export class InconsistentTokensError extends Error {
  override name = 'InconsistentTokensError';

  constructor() {
    super('batch submitted with inconsistent api_key values');
  }
}

/** The project key that an event names in its fields, or else in its properties. */
export function eventToken(event: Fields): unknown {
  const own = event.api_key ?? event.token ?? event.$token;
  if (own !== undefined && own !== null) return own;
  const { properties } = event;
  return typeof properties === 'object' && properties !== null ? (properties as Fields).token : undefined;
}

/** What a request says about all of its events together. */
export interface Envelope {
  /** The project key for all events. Undefined if each event names it. */
  token: unknown;
  sentAt: unknown;
  historical: boolean;
  /** The events of a small body. The events of a large one come in chunks. */
  events: unknown[];
  /** Whether the request is a single event, so that refusing the request loses no other event. */
  single: boolean;
}

/** The content of a body `{ data: … }`: an event or a list of events. */
function inner(root: Fields): unknown {
  const { data } = root;
  const wraps =
    root.event === undefined && root.batch === undefined && typeof data === 'object' && data !== null;
  return wraps ? data : undefined;
}

const YES: ReadonlySet<unknown> = new Set([true, 1, 'true', '1']);
const NO: ReadonlySet<unknown> = new Set([undefined, null, false, 0, 'false', '0', '']);

/**
 * Whether the request is a historical migration. An unclear value is refused: taken as live, old events would trigger
 * things.
 */
function isHistorical({ historical_migration: value }: Fields): boolean {
  const known = typeof value === 'string' ? value.trim().toLowerCase() : value;
  if (YES.has(known)) return true;
  if (NO.has(known)) return false;
  throw new DecodeError(
    'invalid_request',
    `failed to parse request: historical_migration must be true or false, it is ${typeName(value)}`,
  );
}

/** The project key that a body names outside of its events. */
export function rootToken({ root, formToken }: Decoded): unknown {
  return isObject(root) ? (root.api_key ?? root.token ?? root.$token ?? formToken) : formToken;
}

/** Reads the envelope of any form of body: a list of events, a batch, a wrapped payload, one event. */
export function readEnvelope(decoded: Decoded): Envelope {
  const { root, formToken } = decoded;
  if (Array.isArray(root)) {
    return { token: formToken, sentAt: undefined, historical: false, events: root, single: false };
  }
  if (!isObject(root))
    throw new DecodeError(
      'invalid_request',
      'failed to parse request: expected an object or an array of events',
    );
  const own = rootToken(decoded);
  if (root.batch !== undefined && root.batch !== null) {
    if (!Array.isArray(root.batch)) {
      throw new DecodeError(
        'invalid_request',
        `failed to parse request: batch must be an array of events, it is ${typeName(root.batch)}`,
      );
    }
    return {
      token: own,
      sentAt: root.sent_at,
      historical: isHistorical(root),
      events: root.batch,
      single: false,
    };
  }
  const content = inner(root);
  if (content !== undefined) {
    const list = Array.isArray(content) ? content : [content];
    return {
      token: own,
      sentAt: root.sent_at,
      historical: isHistorical(root),
      events: list,
      single: !Array.isArray(content),
    };
  }
  return {
    token: eventToken(root) ?? formToken,
    sentAt: root.sent_at,
    historical: isHistorical(root),
    events: [root],
    single: true,
  };
}

export function typeName(value: unknown): string {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'an array';
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`;
}
