import pg from 'pg';
import type { Column } from '../../formats/columns.ts';
import type { TableRules } from '../../models/index.ts';
import type { Delivery } from '../destination.ts';
import type { Session } from './connection.ts';
import { sendCopy } from './copy-in.ts';
import { hasKey, keyOf } from './rules.ts';
import { quoted, type TargetColumn, type TargetTable } from './table.ts';

/** So many of the rows that the table refuses are named. */
export const MOST_REJECTIONS = 20;

/** The schema of temporary tables is named, so that this can never be a table of the user. */
const STAGE = 'pg_temp.sluice_stage';
const REJECTED = 'pg_temp.sluice_rejected';

/** Types whose binary form is that of the rows, so that the server can read them unchanged. */
const STAGED: Record<Column['type'], string> = {
  string: 'text',
  json: 'text',
  uuid: 'uuid',
  int32: 'integer',
  int64: 'bigint',
  float64: 'double precision',
  bool: 'boolean',
  timestamp: 'timestamptz',
  strings: 'text[]',
};

/** Loads all rows into a temporary table of this transaction. */
export async function stageRows(
  session: Session,
  delivery: Delivery,
): Promise<{ rows: number; bytes: number }> {
  const columns = delivery.columns.map((column) => `${quoted(column.name)} ${STAGED[column.type]}`);
  await session.query(`create temporary table sluice_stage (${columns.join(', ')}) on commit drop`);
  const names = delivery.columns.map((column) => quoted(column.name)).join(', ');
  const sent = await sendCopy(
    session,
    `copy ${STAGE} (${names}) from stdin (format binary)`,
    delivery.read(),
    (bytes) => delivery.onProgress?.(0, bytes),
  );
  // The server has no statistics of a new table, and would plan as if it were almost empty.
  await session.run('analyze the rows', `analyze ${STAGE}`);
  return sent;
}

/** Answers whether the server reads the values of a column from a text, so that it may not be able to. */
const isRead = ({ isText, source }: Pick<TargetColumn, 'isText' | 'source'>): boolean =>
  !isText && STAGED[source.type] === 'text';

/** A staged column in the table's type. Where it can, assignment converts: it checks lengths, a cast would cut texts. */
function converted({ name, type, isText, source }: TargetColumn): string {
  const staged = `s.${quoted(name)}`;
  if (isText) return staged;
  if (isRead({ isText, source })) return `cast(${staged} as ${type})`;
  return type === 'jsonb' || type === 'json' ? `to_${type}(${staged})` : staged;
}

function sameKey(table: TargetTable, key: readonly string[], target: string): string {
  return key
    .map((name) => {
      const column = table.columns.find((one) => one.name === name) as TargetColumn;
      return `${target}.${quoted(name)} = cast(s.${quoted(name)} as ${column.type})`;
    })
    .join(' and ');
}

const namesOf = (table: TargetTable) => new Set(table.columns.map((column) => column.name));

/** The key by which the table recognises rows. A table without one was refused. */
const keyIn = (table: TargetTable, rules: TableRules): readonly string[] =>
  (table.uniqueOn ?? keyOf(rules, namesOf(table))) as readonly string[];

/** The columns of the table that decide which of two rows is newer. */
function orderOf(table: TargetTable, { newer }: TableRules): string[] {
  if (!newer) return [];
  const names = namesOf(table);
  return [...newer.order, ...newer.finer.filter((name) => names.has(name))];
}

/** The condition for replacing a row. A row without a value in these columns counts as older. */
function wins(table: TargetTable, rules: TableRules): string {
  const order = orderOf(table, rules).map(quoted);
  const [ours, theirs] = ['excluded', 't'].map(
    (row) => `(${order.map((one) => `${row}.${one}`).join(', ')})`,
  );
  const unknown = order.map((one) => `t.${one} is null`).join(' or ');
  return `${unknown} or ${ours} ${rules.newer?.strictly ? '>' : '>='} ${theirs}`;
}

/** The statement that inserts staged rows and does not duplicate rows that are there. `where` selects staged rows. */
export function insertText(table: TargetTable, name: string, rules: TableRules, where = 'true'): string {
  const names = table.columns.map((column) => quoted(column.name));
  const values = table.columns.map(converted).join(', ');
  const insert = `insert into ${name} as t (${names.join(', ')})`;
  if (!hasKey(rules)) return `${insert} select ${values} from ${STAGE} s where ${where}`;
  const key = keyIn(table, rules);
  if (!rules.newer) {
    // Without a unique index, a uuid that comes twice in the source is inserted twice.
    const rows = `select ${values} from ${STAGE} s where ${where}`;
    return table.uniqueOn
      ? `${insert} ${rows} on conflict (${key.map(quoted).join(', ')}) do nothing`
      : `${insert} ${rows} and not exists (select 1 from ${name} old where ${sameKey(table, key, 'old')})`;
  }
  const keys = key.map((one) => `s.${quoted(one)}`).join(', ');
  const changed = names.filter((_, index) => !key.includes(table.columns[index]?.name as string));
  const newest = orderOf(table, rules)
    .map((one) => `s.${quoted(one)} desc nulls last`)
    .join(', ');
  return (
    `${insert} select distinct on (${keys}) ${values} from ${STAGE} s where ${where} order by ${keys}, ${newest} ` +
    `on conflict (${key.map(quoted).join(', ')}) do update ` +
    `set ${changed.map((one) => `${one} = excluded.${one}`).join(', ')} where ${wins(table, rules)}`
  );
}

/**
 * Inserts staged rows one by one, which is much slower. It is needed only if a value does not fit its column. Rows with
 * such a value are set aside with the reason, and the others are inserted. Rows without a key are named by their number.
 */
export async function insertEach(
  session: Session,
  table: TargetTable,
  name: string,
  rules: TableRules,
): Promise<number> {
  await session.query(
    `create temporary table sluice_rejected (number bigint, key text, reason text) on commit drop`,
  );
  const newest = orderOf(table, rules).map((one) => `s.${quoted(one)} asc nulls first`);
  const order = newest.length > 0 ? `order by ${newest.join(', ')}` : '';
  const insert = insertText(table, name, rules, 's.ctid = one.place');
  const key = hasKey(rules) ? `s.${quoted(keyIn(table, rules).at(-1) as string)}::text` : 'null::text';
  // Tells which column it is, where the server does not.
  const tries = table.columns.filter(isRead).map(
    (column) => `
          begin
            perform ${converted(column)} from ${STAGE} s where s.ctid = one.place;
          exception when data_exception then
            reason := 'column ' || ${pg.escapeLiteral(quoted(column.name))} || ': ' || sqlerrm;
          end;`,
  );
  // The statement contains only quoted names. The tag cannot end early, since names that contain it are refused.
  const tag = '$sluice_rows$';
  if (insert.includes(tag)) throw new Error(`a column must not be called ${tag}`);
  await session.query(
    `create function pg_temp.sluice_insert_each() returns bigint language plpgsql as ${tag}
     #variable_conflict use_column
     declare one record; written bigint := 0; added bigint; number bigint := 0; reason text;
     begin
       for one in select s.ctid as place, ${key} as key from ${STAGE} s ${order} loop
         number := number + 1;
         begin
           ${insert};
           get diagnostics added = row_count;
           written := written + added;
         exception when data_exception then
           reason := sqlerrm;${tries.join('')}
           insert into ${REJECTED} values (number, coalesce(one.key, 'row ' || number), reason);
         end;
       end loop;
       return written;
     end ${tag}`,
  );
  const { rows } = await session.run<{ written: string }>(
    'merge the rows',
    'select pg_temp.sluice_insert_each()::text as written',
  );
  await session.query('drop function pg_temp.sluice_insert_each()');
  return Number(rows[0]?.written);
}

export async function rejectedRows(
  session: Session,
  most: number,
): Promise<{ rejected: number; rejections: { key: string; reason: string }[] }> {
  const counted = await session.run<{ count: string }>(
    'count what it refused',
    `select count(*)::text as count from ${REJECTED}`,
  );
  const { rows } = await session.run<{ key: string; reason: string }>(
    'name what it refused',
    `select key, left(reason, 300) as reason from ${REJECTED} order by number limit ${most}`,
  );
  return { rejected: Number(counted.rows[0]?.count), rejections: rows };
}

/** Counts the different staged rows, and how many of them the table has. */
export async function countStaged(
  session: Session,
  table: TargetTable,
  name: string,
  rules: TableRules,
): Promise<{ expected: number; found: number }> {
  const key = keyIn(table, rules);
  const keys = key.map((one) => `s.${quoted(one)}`).join(', ');
  const { rows } = await session.run<{ expected: string; found: string }>(
    'compare the rows',
    `select count(*)::text as expected,
       (count(*) filter (where exists (select 1 from ${name} t where ${sameKey(table, key, 't')})))::text as found
     from (select distinct ${keys} from ${STAGE} s) s`,
  );
  return { expected: Number(rows[0]?.expected), found: Number(rows[0]?.found) };
}
