// The table of a result of a query. Its rows have no key by which they could be recognised, so the table belongs to the
// export as a whole: a run makes it, and a later run of the same export replaces it.
import pg from 'pg';
import type { Delivered, Delivery } from '../destination.ts';
import { DestinationError } from '../errors.ts';
import type { PostgresConfig } from './config.ts';
import { place, type Session } from './connection.ts';
import { sendCopy } from './copy-in.ts';
import { createdChanges, directRows } from './direct.ts';
import { insertEach, MOST_REJECTIONS, rejectedRows, stageRows } from './stage.ts';
import { createdTable, createTableText, findTable, lockTable, quoted, tableName } from './table.ts';

/** The comment by which a table is known as that of an export. */
const markOf = (exportId: string) => `Sluice export ${exportId}`;

/**
 * Makes the table of an export anew, empty, in a transaction that has begun. Until it is committed, others see what was
 * there. Refuses a table that this export did not make.
 */
async function makeAnew(session: Session, config: PostgresConfig, delivery: Delivery): Promise<void> {
  const { run, columns, rules } = delivery;
  const name = tableName(config);
  await lockTable(session, config);
  const found = await findTable(session, config);
  if (found && found.comment !== markOf(run.exportId)) {
    throw new DestinationError(
      'occupied',
      `${place(config)}: the table is there already. An export of a whole query makes its own table: name another one, or drop this one.`,
    );
  }
  if (found) await session.run('replace the table', `drop table ${name}`);
  await session.run('create the table', createTableText(config, columns, rules));
  await session.run(
    'mark the table',
    `comment on table ${name} is ${pg.escapeLiteral(markOf(run.exportId))}`,
  );
}

/** Replaces the table of an export with these rows. Fails if the table cannot hold one of their values. */
export async function replaceOwnTable(
  session: Session,
  config: PostgresConfig,
  delivery: Delivery,
): Promise<Delivered> {
  const { columns } = delivery;
  await makeAnew(session, config, delivery);
  const name = tableName(config);
  const names = columns.map((column) => quoted(column.name)).join(', ');
  const { rows, bytes } = await sendCopy(
    session,
    `copy ${name} (${names}) from stdin (format binary)`,
    directRows(delivery.read(), createdChanges(columns)),
    (sent) => delivery.onProgress?.(0, sent),
  );
  return { rows, bytes, written: rows, rejected: 0, rejections: [] };
}

/** Replaces the table of an export with those of these rows that it can hold. The others are named by their numbers. */
export async function replaceOwnTableByRows(
  session: Session,
  config: PostgresConfig,
  delivery: Delivery,
): Promise<Delivered> {
  const { rows, bytes } = await stageRows(session, delivery);
  await makeAnew(session, config, delivery);
  const table = createdTable(delivery.columns, delivery.rules);
  const written = await insertEach(session, table, tableName(config), delivery.rules);
  return { rows, bytes, written, ...(await rejectedRows(session, MOST_REJECTIONS)) };
}
