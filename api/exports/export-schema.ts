import { z } from 'zod';
import { shownExport } from '../../exports/reads/shown-export.ts';
import type { BatchExportRow } from '../../exports/rows/batch-exports.ts';
import type { Health } from '../../exports/rows/health.ts';
import { INTERVAL_LENGTHS } from '../../intervals/index.ts';
import { MODELS } from '../../models/index.ts';
import { isIanaZone } from '../../values/zones.ts';
import { freeForm, instant, text, timestamp } from '../fields.ts';
import { changedDestination, destination, newDestination } from './destination-schema.ts';
import { type RunView, run } from './run-schema.ts';

const moment = timestamp.nullable();

export const batchExport = z
  .object({
    id: z.uuid(),
    team_id: z.int(),
    name: z.string(),
    model: z.enum(MODELS),
    destination: z.object({
      type: z.string(),
      config: freeForm.meta({ description: 'Without its secrets.' }),
    }),
    interval: z.enum(INTERVAL_LENGTHS),
    timezone: z.string(),
    offset_day: z.int().min(0).max(6).nullable().meta({ description: 'Null: it is not for weeks.' }),
    offset_hour: z.int().min(0).max(23).nullable().meta({
      description: 'Null: it is not for days or weeks.',
    }),
    paused: z.boolean(),
    created_at: timestamp,
    last_updated_at: timestamp,
    last_paused_at: moment,
    start_at: moment,
    end_at: moment,
    hogql_query: z.string().nullable(),
    schema: z
      .object({
        fields: z.array(z.object({ expression: z.string(), alias: z.string() })),
        values: freeForm,
        hogql_query: z.string(),
      })
      .nullable()
      .meta({ description: 'The columns that `hogql_query` selects.' }),
    filters: z.array(freeForm).nullable(),
    missing: z.int().nullable().meta({
      description: 'Intervals that are long over and were not exported; null: nobody has looked yet.',
    }),
    lag: z.int().nullable().meta({
      description:
        'Seconds since which exported intervals have been behind; 0: none is. Null: nobody has looked yet.',
    }),
    latest_runs: z.array(run).meta({ description: 'The ten newest.' }),
  })
  .meta({ id: 'BatchExport' });
export type BatchExportView = z.output<typeof batchExport>;

export function batchExportView(
  row: BatchExportRow,
  latestRuns: RunView[],
  health?: Pick<Health, 'missing' | 'lag_seconds'>,
): BatchExportView {
  const shown = shownExport(row);
  return {
    id: row.id,
    team_id: row.project_id,
    ...shown,
    schema: shown.schema as BatchExportView['schema'],
    filters: shown.filters as BatchExportView['filters'],
    created_at: row.created_at,
    last_updated_at: row.last_updated_at,
    missing: health?.missing ?? null,
    lag: health ? Math.round(health.lag_seconds) : null,
    latest_runs: latestRuns,
  };
}

const zone = z
  .string()
  .refine(isIanaZone, {
    params: { code: 'invalid_choice' },
    error: ({ input }) => `${JSON.stringify(input)} is not a valid choice.`,
  })
  .nullable()
  .meta({ description: 'IANA name: where days and weeks begin. Default: UTC.' });

const writable = {
  model: z.enum(MODELS).nullable().meta({ description: 'Default: `events`. Cannot be changed.' }),
  timezone: zone,
  offset_day: z.int().min(0).max(6).nullable().meta({ description: 'The day weeks begin on; 0 is Sunday.' }),
  offset_hour: z.int().min(0).max(23).nullable().meta({
    description: 'The local hour days and weeks begin at.',
  }),
  paused: z.boolean(),
  last_paused_at: instant.nullable(),
  start_at: instant.nullable().meta({ description: 'No run covers anything before.' }),
  end_at: instant.nullable().meta({ description: 'No run covers anything after.' }),
  hogql_query: z.string().nullable().meta({
    description: '`SELECT columns FROM events`: other columns than the usual ones.',
  }),
  filters: z
    .unknown()
    .optional()
    .meta({
      description: 'Which events are exported: those that all of these let through.',
      anyOf: [
        {
          type: 'array',
          items: {
            type: 'object',
            properties: {
              type: { enum: ['event', 'person', 'hogql'] },
              key: { type: 'string', description: 'A property; of `hogql` an expression.' },
              operator: { type: 'string', description: 'Default: `exact`.' },
              value: { description: 'A text, a number, a boolean or a list of these.' },
            },
            required: ['type', 'key'],
          },
        },
        { type: 'null' },
      ],
    }),
};
const name = text(400);
const interval = z.enum(INTERVAL_LENGTHS);

export const newBatchExport = z.object({
  name,
  destination: newDestination,
  interval,
  ...z.object(writable).partial().shape,
});
/** On the routes of organizations the body says to which project the export belongs. */
export const newOrganizationBatchExport = newBatchExport.extend({
  team_id: z.int().optional().meta({
    description: 'The project; needed if the organization has several and the user works in none of them.',
  }),
});
/** A PUT: what is stored of the destination need not be said again. */
export const wholeBatchExport = newBatchExport.extend({ destination });
export const batchExportPatch = z
  .object({
    name,
    destination: changedDestination,
    interval,
    ...writable,
  })
  .partial();

export type NewBatchExportBody = z.output<typeof newBatchExport>;
export type BatchExportPatch = z.output<typeof batchExportPatch>;
