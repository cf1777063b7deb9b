import { z } from 'zod';
import { freeForm, timestamp } from '../fields.ts';

const event = z.object({
  event: z.string().meta({ description: 'The name; at most 200 characters are kept.' }),
  distinct_id: z.string().optional().meta({
    description: 'Who did it. May stand in `properties` instead, but must stand in one of the two.',
  }),
  properties: freeForm.optional(),
  timestamp: timestamp
    .optional()
    .meta({ description: 'When it happened, ISO 8601. Default: when it is received.' }),
  uuid: z.guid().optional().meta({ description: 'The same event sent again is stored once.' }),
});

/** These schemas only describe. `capture/parse` accepts more forms than these. */
export const oneEvent = event
  .extend({
    distinct_id: z.string().meta({ description: 'Who did it. May stand in `properties` instead.' }),
    api_key: z.string().meta({ description: 'The project key, `phc_…`.' }),
  })
  .meta({ id: 'CaptureEvent' });

export const eventBatch = z
  .object({
    api_key: z.string().meta({ description: 'The project key, `phc_…`.' }),
    batch: z.array(event),
    sent_at: timestamp.optional().meta({ description: "The client's time of sending; corrects its clock." }),
    historical_migration: z
      .boolean()
      .optional()
      .meta({ description: 'An import: every event needs a timestamp at least 48 hours old.' }),
  })
  .meta({ id: 'CaptureBatch' });

export const v1Batch = z
  .object({
    created_at: timestamp.optional(),
    historical_migration: z.boolean().optional(),
    batch: z.array(
      event.extend({
        options: freeForm.optional(),
        session_id: z.string().optional(),
        window_id: z.string().optional(),
      }),
    ),
  })
  .meta({ id: 'CaptureV1Batch' });

export const captured = z.object({ status: z.literal('Ok') });

export const v1Results = z.object({
  results: z.record(
    z.guid(),
    z.object({ result: z.enum(['ok', 'warning', 'drop', 'retry']), details: z.string().optional() }),
  ),
});
