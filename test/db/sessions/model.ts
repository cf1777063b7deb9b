// The definition of sessions (docs/sessions.md) once more, event by event and without regard to cost.
import type { SessionRow, Stretch } from './readers.ts';

export interface ModelEvent {
  uuid: string;
  event: string;
  distinct_id: string;
  /** Milliseconds. */
  timestamp: number;
  inserted_at: number;
  session_id: string | null;
  properties: Record<string, unknown>;
}

/** A session without its channel, which a function of its own decides. */
export type ModelSession = Omit<
  SessionRow,
  'channel_type' | 'start_timestamp' | 'end_timestamp' | '_inserted_at'
> & { start_timestamp: number; end_timestamp: number; _inserted_at: number };

const HOUR = 3_600_000;
const DAY = 24 * HOUR;
type Within = (timestamp: number) => boolean;

function spanOf(id: string): Within | undefined {
  if (!/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}$/i.test(id)) return undefined;
  const made = Number.parseInt(id.slice(0, 13).replace('-', ''), 16);
  return (timestamp) => timestamp >= made - HOUR && timestamp < made + 25 * HOUR;
}

const inOrder = (a: ModelEvent, b: ModelEvent) => a.timestamp - b.timestamp || (a.uuid < b.uuid ? -1 : 1);

/** A property as text, as `json ->> name` gives it; the empty text is none. */
function text(event: ModelEvent | undefined, name: string): string | null {
  const value = event?.properties[name] ?? null;
  if (value === null || value === '') return null;
  return typeof value === 'string' ? value : JSON.stringify(value);
}

function partsOf(url: string | null): { path: string | null; host: string | null } {
  if (url === null) return { path: null, host: null };
  const match = /^https?:\/\/([^/?#:]*)[^/?#]*([^?#]*)/.exec(url);
  return { host: match?.[1] ?? '', path: match?.[2] ?? '' };
}

function summary(id: string, list: ModelEvent[]): ModelSession {
  const sorted = list.toSorted(inOrder);
  const [first, last] = [sorted[0]!, sorted.at(-1)!];
  const visits = sorted.map((event) => text(event, '$current_url')).filter((url) => url !== null);
  const entry = sorted.find((event) => text(event, '$current_url') !== null) ?? first;
  const entryUrl = visits[0] ?? null;
  const endUrl = visits.at(-1) ?? null;
  const count = (name: string) => sorted.filter((one) => one.event === name).length;
  const [pageviews, autocaptures, screens] = [count('$pageview'), count('$autocapture'), count('$screen')];
  const seconds = (last.timestamp - first.timestamp) / 1000;
  const clicks = sorted.map((one) => text(one, '$external_click_url')).filter((one) => one !== null);
  const lcps = sorted
    .map((one) => text(one, '$web_vitals_LCP_value'))
    .filter((one) => one !== null && /^-?[\d.]+$/.test(one));
  const unique = [...new Set(visits)];
  const of = (name: string) => text(entry, name);
  const tags = ['source', 'campaign', 'medium', 'term', 'content'].map((name) => [
    `entry_utm_${name}`,
    of(`utm_${name}`),
  ]);
  const clickIds = CLICK_IDS.map((name) => [`entry_${name}`, of(name)]);
  return {
    session_id: id,
    session_id_v7: spanOf(id) ? id.toLowerCase() : null,
    team_id: 1,
    distinct_id: last.distinct_id,
    start_timestamp: first.timestamp,
    end_timestamp: last.timestamp,
    urls: unique.slice(0, 1000),
    num_uniq_urls: unique.length,
    entry_current_url: entryUrl,
    entry_pathname: partsOf(entryUrl).path,
    entry_hostname: partsOf(entryUrl).host,
    end_current_url: endUrl,
    end_pathname: partsOf(endUrl).path,
    end_hostname: partsOf(endUrl).host,
    exit_current_url: endUrl,
    exit_pathname: partsOf(endUrl).path,
    entry_referring_domain: of('$referring_domain'),
    entry_referrer: of('$referrer'),
    ...Object.fromEntries([...tags, ...clickIds]),
    pageview_count: pageviews,
    autocapture_count: autocaptures,
    screen_count: screens,
    session_duration: Math.floor(seconds),
    duration: Math.floor(seconds),
    is_bounce:
      pageviews + screens === 0 ? null : pageviews + screens === 1 && autocaptures === 0 && seconds < 10,
    last_external_click_url: clicks.at(-1) ?? null,
    page_screen_autocapture_count_up_to: Math.min(pageviews + screens + autocaptures, 2),
    vitals_lcp: lcps[0] === undefined ? null : Number(lcps[0]),
    _inserted_at: Math.max(...sorted.map((one) => one.inserted_at)),
  } as ModelSession;
}

export const CLICK_IDS = [
  ...['gclid', 'fbclid', 'gad_source', 'gclsrc', 'dclid', 'gbraid', 'wbraid', 'msclkid', 'twclid'],
  ...['li_fat_id', 'mc_cid', 'igshid', 'ttclid', 'irclid', '_kx'],
] as const;

/** One session of all events, looked for in the span of its id and in `near`. */
export function modelSession(events: ModelEvent[], id: string, near: Within[]): ModelSession | undefined {
  const span = spanOf(id);
  const found = events.filter(
    (one) => one.session_id === id && (span?.(one.timestamp) || near.some((within) => within(one.timestamp))),
  );
  const inTime = found.filter((one) => span?.(one.timestamp));
  const list = inTime.length > 0 ? inTime : found;
  return list.length > 0 ? summary(id, list) : undefined;
}

/** The sessions that some events belong to. */
function sessionsOf(events: ModelEvent[], seen: ModelEvent[]): ModelSession[] {
  const byId = Map.groupBy(
    seen.filter((one) => one.session_id !== null),
    (one) => one.session_id as string,
  );
  return [...byId].flatMap(([id, list]) => {
    const near = list
      .filter((one) => !spanOf(id)?.(one.timestamp))
      .map(
        (one): Within =>
          (timestamp) =>
            timestamp >= one.timestamp - DAY && timestamp < one.timestamp + DAY,
      );
    return modelSession(events, id, near) ?? [];
  });
}

const within = ({ from, to }: Stretch, time: number) => time >= Date.parse(from) && time < Date.parse(to);

export const modelChanged = (events: ModelEvent[], stretch: Stretch): ModelSession[] =>
  sessionsOf(
    events,
    events.filter((one) => within(stretch, one.inserted_at)),
  );

export const modelBegun = (events: ModelEvent[], stretch: Stretch): ModelSession[] =>
  sessionsOf(
    events,
    events.filter((one) => within(stretch, one.timestamp)),
  ).filter((one) => within(stretch, one.start_timestamp));

export const modelAll = (events: ModelEvent[]): ModelSession[] => sessionsOf(events, events);
