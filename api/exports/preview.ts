import { z } from 'zod';
import { type ExportPreview, previewExport, previewNewExport } from '../../exports/commands/preview.ts';
import { instantText } from '../../values/dates.ts';
import { clientSignal } from '../asker.ts';
import type { App, ExportRouteDependencies } from '../dependencies.ts';
import { freeForm, timestamp } from '../fields.ts';
import { newBatchExport, newOrganizationBatchExport } from './export-schema.ts';
import { findsExport } from './find-export.ts';
import { intervalChoice } from './interval-choice.ts';
import { chooseProject, PLACES, WRITE } from './places.ts';

const TAGS = ['batch exports'];
const ROWS = 10;
const MOST_ROWS = 100;

const limit = z.int().min(0).max(MOST_ROWS).default(ROWS).meta({ description: 'How many rows to show.' });
const preview = z
  .object({
    data_interval_start: timestamp.nullable(),
    data_interval_end: timestamp,
    columns: z.array(z.object({ name: z.string(), type: z.string() })),
    rows: z
      .array(freeForm)
      .meta({ description: 'The first rows as they would be exported, as many as fit into 8 MiB.' }),
    estimate: z.object({
      rows: z.int().meta({ description: 'The number of rows of the interval.' }),
      exact: z
        .boolean()
        .meta({ description: 'Whether the rows were counted. If not, the number is an estimate.' }),
      bytes: z.int().meta({ description: 'The approximate size as JSON lines without compression.' }),
    }),
    keys: z.array(z.string()).nullable().meta({
      description:
        'The files that would be written, at most 20. Null if the destination takes rows instead of files.',
    }),
    manifest_key: z.string().nullable(),
  })
  .meta({ id: 'BatchExportPreview' });

const view = ({ interval, ...shown }: ExportPreview): z.output<typeof preview> => ({
  data_interval_start: interval.start === null ? null : instantText(interval.start),
  data_interval_end: instantText(interval.end),
  ...shown,
});

/** Adds the routes that show what an export would send. */
export function previewRoutes(app: App, deps: ExportRouteDependencies): void {
  const find = findsExport(deps.pool);

  for (const { prefix, params, access, of } of PLACES) {
    app.post(
      `${prefix}preview/`,
      {
        config: { access: { scope: WRITE, ...access } },
        schema: {
          tags: TAGS,
          summary: `Preview a new batch export ${of}`,
          description: 'Shows what it would send for the last finished interval. Stores and sends nothing.',
          params,
          body: ('project_id' in params.shape ? newBatchExport : newOrganizationBatchExport).extend({
            limit,
          }),
          response: { 200: preview },
        },
      },
      async (request, reply) => {
        const { limit: rows, ...body } = request.body;
        const signal = clientSignal(reply);
        return view(await previewNewExport(deps, chooseProject(request), body, rows, signal));
      },
    );

    app.post(
      `${prefix}:id/preview/`,
      {
        config: { access: { scope: WRITE, ...access } },
        preValidation: find,
        schema: {
          tags: TAGS,
          summary: `Preview an interval of a batch export ${of}`,
          description:
            'Shows what the export would send for the last finished interval, or for the one that the body names. An ' +
            'interval that has not ended is shown up to now. Sends nothing.',
          params: params.extend({ id: z.string() }),
          body: z.object({ ...intervalChoice, limit }),
          response: { 200: preview },
        },
      },
      async ({ batchExport: row, body: { limit: rows, ...choice } }, reply) =>
        view(await previewExport(deps, row, choice, rows, clientSignal(reply))),
    );
  }
}
