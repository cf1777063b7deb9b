import type { RowsDestination } from './destination.ts';
import { type PostgresConfig, postgresFields } from './postgres/config.ts';
import { deliverToPostgres, findInPostgres } from './postgres/deliver.ts';
import { postgresSteps } from './postgres/steps.ts';

/** Rows in a table of another Postgres. */
export const postgres: RowsDestination<PostgresConfig> = {
  kind: 'rows',
  types: ['Postgres'],
  fields: postgresFields,
  steps: postgresSteps,
  deliver: deliverToPostgres,
  find: findInPostgres,
};
