import type { MappedRow } from '../../exports/rules/interval-states.ts';

/** An hourly export since March 2026, as far as its intervals go by it. */
export const hourly: MappedRow = {
  interval: 'hour',
  timezone: 'UTC',
  interval_offset: 0,
  created_at: '2026-03-01T00:00:00Z',
  scheduled_from: '2026-03-01T00:00:00Z',
  start_at: null,
  end_at: null,
  paused: false,
  last_paused_at: null,
  deleted_at: null,
};
