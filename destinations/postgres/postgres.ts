import { hostAddress } from '../address.ts';
import type { RowsDestination, StepOutcome } from '../destination.ts';
import { DestinationError } from '../errors.ts';
import { columnFault } from './columns.ts';
import { type PostgresConfig, postgresFields } from './config.ts';
import { postgresError, withConnection } from './connection.ts';
import { deliverToPostgres, findInPostgres } from './deliver.ts';
import { tableDoubts } from './doubts.ts';
import { quoted, tableName } from './table.ts';

/** Writes rows into a table of another Postgres. */
export const postgres: RowsDestination<PostgresConfig> = {
  kind: 'rows',
  types: ['Postgres'],
  fields: postgresFields,
  address: ({ host, port, has_self_signed_cert }) => ({
    host: hostAddress(host),
    port,
    has_self_signed_cert,
  }),
  columnFault,
  columns: 'tables',
  takesQuery: true,
  takesOpenEnd: false,
  docs: {
    once: 'one transaction, and a unique key, a comparison by uuid or a table of its own',
    address: ['`host`, `port`, `has_self_signed_cert`'],
  },
  deliver: deliverToPostgres,
  find: findInPostgres,
  steps: [
    {
      name: 'Connect to PostgreSQL',
      description:
        'Ensure the host may be reached, its certificate is trusted, and user and password are right.',
      run: (config, surroundings, signal) =>
        saying(config, () => withConnection(config, surroundings, { signal }, async () => undefined)),
    },
    {
      name: 'Check PostgreSQL schema exists',
      description: 'Ensure the configured schema exists and that the user may use it.',
      run: (config, surroundings, signal) =>
        saying(config, () =>
          withConnection(config, surroundings, { signal }, async (session) => {
            const { rows } = await session.query<{ usage: boolean }>(
              `select has_schema_privilege(oid, 'usage') as usage from pg_catalog.pg_namespace where nspname = $1`,
              [config.schema],
            );
            const name = JSON.stringify(config.schema);
            if (!rows[0])
              return `There is no schema ${name} in the database ${JSON.stringify(config.database)}`;
            return rows[0].usage ? undefined : `The user may not use the schema ${name}`;
          }),
        ),
    },
    {
      name: 'Write to PostgreSQL table',
      description:
        'Ensure that the user may write to the table, or create it if it does not exist, and make temporary tables. Warn of columns that may not take what the export writes. Nothing is kept.',
      run: (config, surroundings, signal) =>
        saying(config, () =>
          withConnection(config, surroundings, { signal }, async (session) => {
            await session.query('begin');
            await session.query('create temporary table sluice_test (one integer) on commit drop');
            const { rows } = await session.query<{ may_insert: boolean; may_select: boolean }>(
              `select has_table_privilege(c.oid, 'insert') as may_insert, has_table_privilege(c.oid, 'select') as may_select
             from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
             where n.nspname = $1 and c.relname = $2`,
              [config.schema, config.table_name],
            );
            const found = rows[0];
            if (found && !(found.may_insert && found.may_select))
              return `The user needs the rights ${found.may_insert ? '' : 'insert, '}select and update on ${tableName(config)}`;
            if (!found) await session.query(`create table ${tableName(config)} (${quoted('one')} integer)`);
            await session.query('rollback');
            const columns = found ? ((await surroundings.columns?.()) ?? []) : [];
            const doubts = columns.length > 0 ? await tableDoubts(session, config, columns) : [];
            if (doubts.length === 0) return undefined;
            return {
              passed: `Warning: ${tableName(config)} may not take all rows, and a run leaves out those that it does not take: ${doubts.join('; ')}.`,
            };
          }),
        ),
    },
  ],
};

/** Returns the message of an error that the destination knows. Throws any other. */
async function saying(config: PostgresConfig, work: () => Promise<StepOutcome>): Promise<StepOutcome> {
  try {
    return await work();
  } catch (error) {
    const known = postgresError(error, config);
    if (known instanceof DestinationError && known.code !== 'unexpected') return known.message;
    throw known;
  }
}
