import type { Queryable } from '../../../db/pool.ts';

/**
 * A session: what the events with one `session_id` say together. Nothing is stored of it; migration 0006 computes it
 * when it is read, docs/sessions.md tells how.
 */
export interface SessionRow {
  session_id: string;
  /** The id as a uuid, if it is one that tells its time. */
  session_id_v7: string | null;
  team_id: number;
  /** Of the last event. */
  distinct_id: string;
  start_timestamp: string;
  end_timestamp: string;
  /** The first thousand, in the order in which they were visited. */
  urls: string[];
  num_uniq_urls: number;
  entry_current_url: string | null;
  entry_pathname: string | null;
  entry_hostname: string | null;
  end_current_url: string | null;
  end_pathname: string | null;
  end_hostname: string | null;
  exit_current_url: string | null;
  exit_pathname: string | null;
  entry_referring_domain: string | null;
  entry_referrer: string | null;
  entry_utm_source: string | null;
  entry_utm_campaign: string | null;
  entry_utm_medium: string | null;
  entry_utm_term: string | null;
  entry_utm_content: string | null;
  entry_gclid: string | null;
  entry_fbclid: string | null;
  entry_gad_source: string | null;
  entry_gclsrc: string | null;
  entry_dclid: string | null;
  entry_gbraid: string | null;
  entry_wbraid: string | null;
  entry_msclkid: string | null;
  entry_twclid: string | null;
  entry_li_fat_id: string | null;
  entry_mc_cid: string | null;
  entry_igshid: string | null;
  entry_ttclid: string | null;
  entry_irclid: string | null;
  entry__kx: string | null;
  pageview_count: number;
  autocapture_count: number;
  screen_count: number;
  channel_type: string;
  /** Whole seconds. */
  session_duration: number;
  duration: number;
  /** Null: there was neither a pageview nor a screen. */
  is_bounce: boolean | null;
  last_external_click_url: string | null;
  /** 0, 1, or 2 for two and more. */
  page_screen_autocapture_count_up_to: number;
  vitals_lcp: number | null;
  /** When the last of its events came in, by the horizon's time. */
  _inserted_at: string;
}

/** From the first instant up to, but without, the second; as texts that Postgres reads. */
export interface Stretch {
  from: string;
  to: string;
}

/** Parameters: project, ids, further stretches for each id as text of a multirange, or null. */
export const SESSIONS_BY_ID_SQL = 'select * from sessions_by_id($1, $2::text[], $3::tstzmultirange[])';
/** Parameters: project, from, to. */
export const SESSIONS_BEGUN_SQL = 'select * from sessions_begun($1, $2::timestamptz, $3::timestamptz)';
export const SESSIONS_CHANGED_SQL = 'select * from sessions_changed($1, $2::timestamptz, $3::timestamptz)';

/** One session. `near`: where to look for the events of one whose id does not tell its time. */
export async function findSession(
  queryable: Queryable,
  projectId: number,
  sessionId: string,
  near?: Stretch,
): Promise<SessionRow | undefined> {
  const stretches = near ? `{["${near.from}","${near.to}")}` : null;
  const { rows } = await queryable.query(SESSIONS_BY_ID_SQL, [projectId, [sessionId], [stretches]]);
  return rows[0];
}

/** The sessions that began then. */
export async function listSessionsBegun(
  queryable: Queryable,
  projectId: number,
  { from, to }: Stretch,
): Promise<SessionRow[]> {
  const { rows } = await queryable.query(`${SESSIONS_BEGUN_SQL} order by start_timestamp, session_id`, [
    projectId,
    from,
    to,
  ]);
  return rows;
}

/** The sessions of which an event came in then, by the horizon's time, as they are now. */
export async function listSessionsChanged(
  queryable: Queryable,
  projectId: number,
  { from, to }: Stretch,
): Promise<SessionRow[]> {
  const { rows } = await queryable.query(`${SESSIONS_CHANGED_SQL} order by start_timestamp, session_id`, [
    projectId,
    from,
    to,
  ]);
  return rows;
}
