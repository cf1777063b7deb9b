/** What the reader may read. Each table has row-level security by project, and the view shows what its tables show. */
export const READABLE = [
  'events',
  'persons',
  'person_distinct_ids',
  'deleted_distinct_ids',
  'groups',
  'deleted_groups',
  'group_types',
  'sessions',
  'cohort_people',
] as const;

/** The functions of the schema `public` that the reader may call. Of the schema `hq` it may call all. */
export const CALLABLE = [
  'channel_kind',
  'channel_type',
  'session_near',
  'session_span',
  'sessions_begun',
  'sessions_by_id',
  'sessions_changed',
] as const;

/**
 * Functions of Postgres and its extensions that everybody may call by default and that reach over a wall, as regular
 * expressions. A superuser takes them away from the reader. No function that HogQL prints is among them.
 */
export const CLOSED = [
  // They change the setting that names the project.
  'set_config',
  // They run SQL from a text.
  'query_to_xml.*',
  'cursor_to_xml.*',
  'table_to_xml.*',
  'schema_to_xml.*',
  'database_to_xml.*',
  'ts_stat',
  'ts_rewrite',
  'dblink.*',
  'crosstab.*',
  'connectby',
  // They show the statements of other transactions of the same role, so of other projects.
  'pg_stat_get_activity',
  'pg_stat_get_backend_activity',
  'pg_stat_statements',
  // They end the work of others, or make it wait.
  'pg_cancel_backend',
  'pg_terminate_backend',
  'pg_(try_)?advisory_.*',
  'pg_sleep.*',
  // They write, or tell other processes something.
  'pg_notify',
  'pg_logical_emit_message',
  'lo_.*',
  'loread',
  'lowrite',
] as const;
