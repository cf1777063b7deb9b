import type { Column } from '../../formats/columns.ts';
import type { PostgresConfig } from './config.ts';
import type { Session } from './connection.ts';
import { DOCUMENTS } from './table.ts';

/** Types of a table that take every value of a column, besides texts of any length. */
const TAKES: Record<Column['type'], readonly string[]> = {
  string: [],
  json: ['jsonb', 'json'],
  uuid: ['uuid'],
  int32: ['integer', 'bigint', 'numeric', 'real', 'double precision'],
  int64: ['bigint', 'numeric', 'double precision'],
  float64: ['double precision', 'numeric', 'real'],
  bool: ['boolean'],
  timestamp: ['timestamp with time zone', 'timestamp without time zone', 'date'],
  strings: ['text[]', 'character varying[]', 'jsonb', 'json'],
};
/** The length of short texts in a table that Sluice creates. A shorter column loses rows. */
const LENGTH = 200;
const UUID_LENGTH = 36;

interface Attribute {
  name: string;
  type: string;
  shown: string;
  length: number | null;
  is_text: boolean;
  is_required: boolean;
}

/**
 * Says which columns of an existing table may not take what an export writes. A run leaves out each row that the table does not
 * take, and completes all the same.
 */
export async function tableDoubts(
  session: Session,
  config: PostgresConfig,
  columns: readonly Column[],
): Promise<string[]> {
  const { rows } = await session.query<Attribute>(
    `select a.attname as name, pg_catalog.format_type(a.atttypid, null) as type,
       pg_catalog.format_type(a.atttypid, a.atttypmod) as shown,
       case when a.atttypid in ('varchar'::regtype, 'bpchar'::regtype) and a.atttypmod > 4 then a.atttypmod - 4 end as length,
       t.typcategory = 'S' as is_text,
       a.attnotnull and not a.atthasdef and a.attidentity = '' and a.attgenerated = '' as is_required
     from pg_catalog.pg_attribute a join pg_catalog.pg_type t on t.oid = a.atttypid
     join pg_catalog.pg_class c on c.oid = a.attrelid join pg_catalog.pg_namespace n on n.oid = c.relnamespace
     where n.nspname = $1 and c.relname = $2 and a.attnum > 0 and not a.attisdropped order by a.attnum`,
    [config.schema, config.table_name],
  );
  const sources = new Map(columns.map((column) => [column.name, column]));
  return rows.flatMap((row) => {
    const source = sources.get(row.name);
    if (!source) {
      return row.is_required ? [`${row.name} must have a value (not null), and the export writes none`] : [];
    }
    return takes(row, source) ? [] : [`${row.name} is ${row.shown}, and the export writes ${said(source)}`];
  });
}

function takes({ type, length, is_text }: Attribute, { type: source, name }: Column): boolean {
  const isDocument = source === 'json' || DOCUMENTS.has(name);
  if (source === 'string' && (type === 'jsonb' || type === 'json')) return isDocument;
  if (!is_text) return TAKES[source].includes(type);
  return length === null || (!isDocument && length >= (source === 'uuid' ? UUID_LENGTH : LENGTH));
}

const SAID: Record<Column['type'], string> = {
  string: 'texts',
  json: 'documents',
  uuid: 'uuids',
  int32: 'integers',
  int64: 'large integers',
  float64: 'numbers',
  bool: 'true or false',
  timestamp: 'times',
  strings: 'lists of texts',
};
const said = ({ type }: Column) => SAID[type];
