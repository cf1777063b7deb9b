import pg from 'pg';
import type { Column } from '../../formats/columns.ts';
import type { TableRules } from '../../models/index.ts';
import type { Delivery } from '../destination.ts';
import { DestinationError } from '../errors.ts';
import type { PostgresConfig } from './config.ts';
import { place, type Session } from './connection.ts';
import { hasKey, keyOf, keysText } from './rules.ts';

export const quoted = (name: string) => pg.escapeIdentifier(name);
export const tableName = (config: PostgresConfig) => `${quoted(config.schema)}.${quoted(config.table_name)}`;

export interface TargetColumn {
  name: string;
  /** The type as Postgres names it, without its length: `character varying`, `jsonb`, `text[]`. */
  type: string;
  /** Whether it is a type of text. */
  isText: boolean;
  source: Column;
}

export interface TargetTable {
  /** The columns that both the rows and the table have, in the order of the rows. */
  columns: TargetColumn[];
  /** The columns of a unique index. Undefined if the table has none over a key. */
  uniqueOn: readonly string[] | undefined;
}

const BY_TYPE: Record<Column['type'], string> = {
  string: 'text',
  json: 'jsonb',
  uuid: 'text',
  int32: 'integer',
  int64: 'bigint',
  float64: 'double precision',
  bool: 'boolean',
  timestamp: 'timestamptz',
  strings: 'text[]',
};
/** The columns of models whose texts are documents. */
export const DOCUMENTS: ReadonlySet<string> = new Set([
  'properties',
  'set',
  'set_once',
  'person_properties',
  'elements',
]);

/** The type of a column in a table that Sluice creates. */
function createdType(column: Column, rules: TableRules): string {
  if (!hasKey(rules)) return BY_TYPE[column.type];
  if (DOCUMENTS.has(column.name) && ['string', 'json'].includes(column.type)) return 'jsonb';
  if (rules.shortTexts.includes(column.name)) return 'varchar(200)';
  return BY_TYPE[column.type];
}

/** A table that was just created for these columns. */
export const createdTable = (columns: readonly Column[], rules: TableRules): TargetTable => ({
  columns: columns.map((source) => {
    const type = createdType(source, rules);
    return { name: source.name, type, isText: type === 'text', source };
  }),
  uniqueOn: undefined,
});

export function createTableText(
  config: PostgresConfig,
  columns: readonly Column[],
  rules: TableRules,
): string {
  const key = keyOf(rules, new Set(columns.map((column) => column.name)));
  const lines = columns.map((column) => `${quoted(column.name)} ${createdType(column, rules)}`);
  if (key) lines.push(`primary key (${key.map(quoted).join(', ')})`);
  return `create table if not exists ${tableName(config)} (\n  ${lines.join(',\n  ')}\n)`;
}

interface Found {
  oid: string;
  kind: string;
  comment: string | null;
}

export async function findTable(session: Session, config: PostgresConfig): Promise<Found | undefined> {
  const { rows } = await session.query<Found>(
    `select c.oid::text, c.relkind as kind, obj_description(c.oid, 'pg_class') as comment from pg_catalog.pg_class c
     join pg_catalog.pg_namespace n on n.oid = c.relnamespace where n.nspname = $1 and c.relname = $2`,
    [config.schema, config.table_name],
  );
  return rows[0];
}

/** Whoever waits for somebody else's lock for longer tries again later, and leaves its place in the worker to others. */
export const LOCK_TIMEOUT = "set local lock_timeout = '2min'";

/** Locks the table against other runs of Sluice that would disturb this one, until the transaction ends. */
export async function lockTable(session: Session, config: PostgresConfig): Promise<void> {
  const name = pg.escapeLiteral(`sluice export ${tableName(config)}`);
  await session.run(
    'let this run have the table',
    `select pg_advisory_xact_lock(hashtextextended(${name}, 0))`,
  );
}

async function createTable(
  session: Session,
  config: PostgresConfig,
  columns: readonly Column[],
  rules: TableRules,
): Promise<void> {
  await session.begin(LOCK_TIMEOUT);
  // `if not exists` alone fails if two transactions create the table at the same time.
  await lockTable(session, config);
  await session.run('create the table', createTableText(config, columns, rules));
  await session.run('commit', 'commit');
}

/** Reads the table, and creates it if it is missing. Never adds or changes a column: that is the owner's choice. */
export async function prepareTable(
  session: Session,
  config: PostgresConfig,
  { run: { model }, columns, rules }: Pick<Delivery, 'run' | 'columns' | 'rules'>,
): Promise<TargetTable> {
  let found = await findTable(session, config);
  if (!found) {
    await createTable(session, config, columns, rules);
    found = await findTable(session, config);
  }
  const where = place(config);
  if (!found) throw new DestinationError('missing', `${where}: the table is gone again`);
  if (!['r', 'p'].includes(found.kind)) throw new DestinationError('mismatch', `${where}: this is no table`);
  const { rows } = await session.query<{
    name: string;
    type: string;
    is_text: boolean;
    is_generated: boolean;
  }>(
    `select a.attname as name, pg_catalog.format_type(a.atttypid, null) as type, t.typcategory = 'S' as is_text,
       a.attgenerated <> '' or a.attidentity = 'a' as is_generated
     from pg_catalog.pg_attribute a join pg_catalog.pg_type t on t.oid = a.atttypid
     where a.attrelid = $1::oid and a.attnum > 0 and not a.attisdropped`,
    [found.oid],
  );
  const there = new Map(rows.filter((row) => !row.is_generated).map((row) => [row.name, row]));
  const common = columns.flatMap((source): TargetColumn[] => {
    const row = there.get(source.name);
    return row ? [{ name: source.name, type: row.type, isText: row.is_text, source }] : [];
  });
  if (common.length === 0)
    throw new DestinationError('mismatch', `${where}: the table has none of the columns of ${model}`);
  const names = new Set(common.map((column) => column.name));
  if (!keyOf(rules, names)) {
    throw new DestinationError(
      'mismatch',
      `${where}: the table needs the columns ${keysText(rules)}, without which a row that is sent again could not be recognised`,
    );
  }
  const uniqueOn = await uniqueKey(session, found.oid, rules.keys);
  if (!uniqueOn && rules.newer) {
    throw new DestinationError(
      'mismatch',
      `${where}: the table needs a primary key or a unique index on (${rules.keys[0]?.join(', ')}), so that rows can be merged`,
    );
  }
  return { columns: common, uniqueOn };
}

/** The first key for which the table has a unique index, over exactly its columns, that `on conflict` can use. */
async function uniqueKey(
  session: Session,
  oid: string,
  keys: readonly (readonly string[])[],
): Promise<readonly string[] | undefined> {
  const { rows } = await session.query<{ names: string[] }>(
    `select array(select a.attname::text from pg_catalog.pg_attribute a
       where a.attrelid = i.indrelid and a.attnum = any(i.indkey[0:i.indnkeyatts - 1])) as names
     from pg_catalog.pg_index i
     where i.indrelid = $1::oid and i.indisunique and i.indisvalid and i.indimmediate
       and i.indpred is null and i.indexprs is null`,
    [oid],
  );
  return keys.find((key) =>
    rows.some(({ names }) => names.length === key.length && key.every((name) => names.includes(name))),
  );
}
