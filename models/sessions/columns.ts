import type { Column } from '../../formats/columns.ts';

const text = (...names: string[]): Column[] =>
  names.map((name) => ({ name, type: 'string', nullable: true }));
const number = (...names: string[]): Column[] =>
  names.map((name) => ({ name, type: 'int32', nullable: false }));
const certain = (type: Column['type'], ...names: string[]): Column[] =>
  names.map((name) => ({ name, type, nullable: false }));

export const SESSION_COLUMNS: readonly Column[] = [
  ...certain('string', 'session_id'),
  { name: 'session_id_v7', type: 'uuid', nullable: true },
  ...number('team_id'),
  ...certain('string', 'distinct_id'),
  ...certain('timestamp', 'start_timestamp', 'end_timestamp'),
  ...certain('strings', 'urls'),
  ...number('num_uniq_urls'),
  ...text('entry_current_url', 'entry_pathname', 'entry_hostname'),
  ...text('end_current_url', 'end_pathname', 'end_hostname', 'exit_current_url', 'exit_pathname'),
  ...text(
    'entry_utm_source',
    'entry_utm_campaign',
    'entry_utm_medium',
    'entry_utm_term',
    'entry_utm_content',
  ),
  ...text('entry_referring_domain', 'entry_gclid', 'entry_fbclid', 'entry_gad_source', 'entry_gclsrc'),
  ...text('entry_dclid', 'entry_gbraid', 'entry_wbraid', 'entry_msclkid', 'entry_twclid', 'entry_li_fat_id'),
  ...text('entry_mc_cid', 'entry_igshid', 'entry_ttclid', 'entry_irclid', 'entry__kx'),
  ...number('pageview_count', 'autocapture_count', 'screen_count'),
  ...certain('string', 'channel_type'),
  ...number('session_duration', 'duration'),
  { name: 'is_bounce', type: 'bool', nullable: true },
  ...text('last_external_click_url'),
  ...number('page_screen_autocapture_count_up_to'),
  { name: 'vitals_lcp', type: 'float64', nullable: true },
  ...certain('timestamp', '_inserted_at'),
];
