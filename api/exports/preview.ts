import { z } from 'zod';
import { type ExportPreview, previewExport, previewNewExport } from '../../exports/commands/preview.ts';
import { instantText } from '../../values/dates.ts';
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
    data_interval_start: timestamp,
    data_interval_end: timestamp,
    columns: z.array(z.object({ name: z.string(), type: z.string() })),
    rows: z
      .array(freeForm)
      .meta({ description: 'The first ones, as they would be exported; as many as fit into 8 MiB.' }),
    estimate: z.object({
      rows: z.int(),
      exact: z.boolean().meta({ description: 'Whether the rows were counted.' }),
      bytes: z.int().meta({ description: 'About what they take as JSON lines, without compression.' }),
    }),
    keys: z
      .array(z.string())
      .nullable()
      .meta({ description: 'Files that would be written, as far as it can be told; null: rows are sent.' }),
    manifest_key: z.string().nullable(),
  })
  .meta({ id: 'BatchExportPreview' });

const view = ({ interval, ...shown }: ExportPreview): z.output<typeof preview> => ({
  data_interval_start: instantText(interval.start),
  data_interval_end: instantText(interval.end),
  ...shown,
});

/** What exports would send, before they do. */
export function previewRoutes(app: App, deps: ExportRouteDependencies): void {
  const find = findsExport(deps.pool);

  for (const { prefix, params, access, of } of PLACES) {
    app.post(
      `${prefix}preview/`,
      {
        config: { access: { scope: WRITE, ...access } },
        schema: {
          tags: TAGS,
          summary: `Show what a batch export ${of} would send, before it is created`,
          description: 'For the last interval that is over. Nothing is stored, nothing is sent.',
          params,
          body: ('project_id' in params.shape ? newBatchExport : newOrganizationBatchExport).extend({
            limit,
          }),
          response: { 200: preview },
        },
      },
      async (request) => {
        const { limit: rows, ...body } = request.body;
        return view(await previewNewExport(deps, chooseProject(request), body, rows));
      },
    );

    app.post(
      `${prefix}:id/preview/`,
      {
        config: { access: { scope: WRITE, ...access } },
        preValidation: find,
        schema: {
          tags: TAGS,
          summary: `Show what a batch export ${of} would send for an interval`,
          description: 'Nothing is sent. An interval that is not over is shown as far as it is.',
          params: params.extend({ id: z.string() }),
          body: z.object({ ...intervalChoice, limit }),
          response: { 200: preview },
        },
      },
      async ({ batchExport: row, body: { limit: rows, ...choice } }) =>
        view(await previewExport(deps, row, choice, rows)),
    );
  }
}
