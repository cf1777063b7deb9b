import type { Delivered, Delivery, RowsFound, Surroundings } from '../destination.ts';
import { DestinationError } from '../errors.ts';
import type { PostgresConfig } from './config.ts';
import { place, postgresError, type Session, stateOf, withConnection } from './connection.ts';
import { CallerError, sendCopy } from './copy-in.ts';
import { directChanges, directRows } from './direct.ts';
import { replaceOwnTable, replaceOwnTableByRows } from './own-table.ts';
import { absentOrder, hasKey } from './rules.ts';
import { countStaged, insertEach, insertText, MOST_REJECTIONS, rejectedRows, stageRows } from './stage.ts';
import { LOCK_TIMEOUT, lockTable, prepareTable, quoted, type TargetTable, tableName } from './table.ts';

/**
 * Begins a transaction that no setting of the user's role ends early. If the network breaks, the server ends it within
 * a minute rather than in hours, so that its rows do not block the next attempt.
 */
const SETTINGS = `set local statement_timeout = 0; set local idle_in_transaction_session_timeout = 0;
set local tcp_keepalives_idle = 30; set local tcp_keepalives_interval = 10; set local tcp_keepalives_count = 3; ${LOCK_TIMEOUT}`;

const isDuplicate = (error: unknown) => stateOf(error) === '23505';
const isBadValue = (error: unknown) => stateOf(error)?.startsWith('22') === true;

/**
 * Copies the rows straight into the table, so that they are written only once. If one of them is there already, the
 * unique index refuses all. Then, and if a value does not fit, this returns undefined.
 */
async function deliverDirectly(
  session: Session,
  config: PostgresConfig,
  table: TargetTable,
  delivery: Delivery,
): Promise<Delivered | undefined> {
  if (delivery.rules.newer || !table.uniqueOn) return undefined;
  const changes = directChanges(delivery.columns, table.columns);
  if (!changes) return undefined;
  const names = table.columns.map((column) => quoted(column.name)).join(', ');
  await session.begin(SETTINGS);
  try {
    const text = `copy ${tableName(config)} (${names}) from stdin (format binary)`;
    const source = directRows(delivery.read(), changes);
    const { rows, bytes } = await sendCopy(session, text, source, (sent) => delivery.onProgress?.(0, sent));
    await askFence(delivery);
    await session.run('commit', 'commit');
    return { rows, bytes, written: rows, rejected: 0, rejections: [] };
  } catch (error) {
    if (!isDuplicate(error) && !isBadValue(error)) throw error;
    await session.query('rollback');
    return undefined;
  }
}

async function insertStaged(
  session: Session,
  config: PostgresConfig,
  table: TargetTable,
  delivery: Delivery,
): Promise<Pick<Delivered, 'written' | 'rejected' | 'rejections'>> {
  const { rules } = delivery;
  await session.query('savepoint insert_all');
  try {
    const { rowCount } = await session.run('merge the rows', insertText(table, tableName(config), rules));
    return { written: rowCount, rejected: 0, rejections: [] };
  } catch (error) {
    if (!isBadValue(error)) throw error;
  }
  await session.query('rollback to savepoint insert_all');
  const written = await insertEach(session, table, tableName(config), rules);
  return { written, ...(await rejectedRows(session, MOST_REJECTIONS)) };
}

async function deliverStaged(
  session: Session,
  config: PostgresConfig,
  table: TargetTable,
  delivery: Delivery,
): Promise<Delivered> {
  await session.begin(SETTINGS);
  const { rows, bytes } = await stageRows(session, delivery);
  // Without a unique index, two attempts at the same time would not see each other's rows.
  if (!table.uniqueOn) await lockTable(session, config);
  const inserted = await insertStaged(session, config, table, delivery);
  const delivered = { rows, bytes, ...inserted };
  requireSome(config, delivered);
  await askFence(delivery);
  await session.run('commit', 'commit');
  return delivered;
}

/** Refuses to leave out all rows. */
function requireSome(config: PostgresConfig, { rows, rejected, rejections }: Delivered): void {
  if (rows === 0 || rejected < rows) return;
  throw new DestinationError(
    'mismatch',
    `${place(config)}: the table takes none of the ${rows} rows (${rejections[0]?.reason})`,
  );
}

function requireColumns(config: PostgresConfig, table: TargetTable, delivery: Delivery): void {
  const names = new Set(table.columns.map((column) => column.name));
  const absent = absentOrder(delivery.rules, names);
  if (absent.length > 0) {
    throw new DestinationError(
      'mismatch',
      `${place(config)}: the table lacks ${absent.join(', ')}, which tell which of two rows is newer`,
    );
  }
}

async function deliverOwnTable(
  session: Session,
  config: PostgresConfig,
  delivery: Delivery,
): Promise<Delivered> {
  const replace = async (work: typeof replaceOwnTable) => {
    await session.begin(SETTINGS);
    const delivered = await work(session, config, delivery);
    requireSome(config, delivered);
    await askFence(delivery);
    await session.run('commit', 'commit');
    return delivered;
  };
  try {
    return await replace(replaceOwnTable);
  } catch (error) {
    if (!isBadValue(error)) throw error;
    await session.query('rollback');
    return replace(replaceOwnTableByRows);
  }
}

/** Writes all rows in one transaction, each once, or none. */
export async function deliverToPostgres(
  config: PostgresConfig,
  surroundings: Surroundings,
  delivery: Delivery,
): Promise<Delivered> {
  return withConnection(config, surroundings, delivery, async (session) => {
    if (!hasKey(delivery.rules)) return deliverOwnTable(session, config, delivery);
    const table = await prepareTable(session, config, delivery);
    requireColumns(config, table, delivery);
    return (
      (await deliverDirectly(session, config, table, delivery)) ??
      (await deliverStaged(session, config, table, delivery))
    );
  }).catch((error) => rethrow(error, config, delivery.signal));
}

/** Counts how many of the rows the table has. Changes nothing. */
export async function findInPostgres(
  config: PostgresConfig,
  surroundings: Surroundings,
  delivery: Delivery,
): Promise<RowsFound> {
  return withConnection(config, surroundings, delivery, async (session) => {
    if (!hasKey(delivery.rules)) throw new Error('rows without a key cannot be recognised');
    const table = await prepareTable(session, config, delivery);
    await session.begin(SETTINGS);
    await stageRows(session, delivery);
    const counts = await countStaged(session, table, tableName(config), delivery.rules);
    await session.query('rollback');
    return counts;
  }).catch((error) => rethrow(error, config, delivery.signal));
}

async function askFence(delivery: Delivery): Promise<void> {
  await delivery.fence?.().catch((error) => {
    throw new CallerError(error);
  });
}

/** Errors of the source and of the fence are rethrown as they are. */
function rethrow(error: unknown, config: PostgresConfig, signal: AbortSignal | undefined): never {
  signal?.throwIfAborted();
  if (error instanceof CallerError) throw error.original;
  throw postgresError(error, config);
}
