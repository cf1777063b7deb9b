import { z } from 'zod';
import { shownDraft } from '../../functions/reads/drafts.ts';
import { shownContent } from '../../functions/reads/shown-function.ts';
import type { ShownFunctionRow } from '../../functions/rows/functions.ts';
import { contentFields, filters, inputSchema, mapping, masking } from '../../functions/rules/definition.ts';
import { LAST_ORDER } from '../../functions/rules/limits.ts';
import { ON_ERROR } from '../../functions/rules/on-error.ts';
import { deliveryPolicy } from '../../functions/rules/policy.ts';
import { statusOf } from '../../functions/rules/status.ts';
import { TYPE_NAMES } from '../../functions/rules/types.ts';
import type { Template } from '../../functions/templates/template.ts';
import { freeForm, instant, optionalText, timestamp } from '../fields.ts';
import { basicUser, basicUserView } from '../tenancy/user-schema.ts';
import { functionTemplate, templateView } from './template-schema.ts';

const status = z
  .object({
    state: z.int().meta({
      description: '0: not enabled. 1: healthy. 2: degraded. 3: disabled for a time. 4: disabled.',
    }),
    rating: z.number().meta({ description: 'From 0 to 1: `tokens` as a share of all.' }),
    tokens: z.int().meta({ description: 'What runs may still cost before the function is slowed down.' }),
  })
  .meta({ id: 'FunctionStatus' });

const type = z.enum(TYPE_NAMES);
const order = z.int().min(0).max(LAST_ORDER);
const onError = z
  .enum(ON_ERROR)
  .nullable()
  .meta({
    description:
      'What happens to an event that a transformation fails on. `pass`: it is stored as it was. `drop`: it is not stored. ' +
      '`refuse`: its whole request is answered with 503 and nothing of it is stored. Null for all other types.',
  });

/** What a function is made of, as users write it. */
export const functionContent = z
  .object({
    hog: z.string(),
    inputs_schema: z.array(freeForm),
    inputs: z
      .record(z.string(), freeForm)
      .meta({ description: 'A secret input is shown as `{"secret": true}`.' }),
    filters: freeForm,
    masking: freeForm.nullable(),
    mappings: z.array(freeForm).nullable(),
  })
  .meta({ id: 'FunctionContent' });
export type ContentView = z.output<typeof functionContent>;

/** A function in a list. */
export const functionItem = z
  .object({
    id: z.guid(),
    type,
    name: z.string().nullable(),
    description: z.string(),
    created_at: timestamp,
    created_by: basicUser.nullable(),
    updated_at: timestamp,
    enabled: z.boolean(),
    hog: z.string(),
    filters: freeForm,
    icon_url: z.string().nullable(),
    template: functionTemplate.nullable(),
    status,
    execution_order: z.int().nullable(),
    draft_updated_at: timestamp
      .nullable()
      .meta({ description: 'When the draft of the function was last saved. Null: it has none.' }),
    search_match_type: z.enum(['exact', 'similar']).optional().meta({
      description: 'Whether the function has the text that was searched for. Only in lists with `search`.',
    }),
  })
  .meta({ id: 'FunctionItem' });

/** A whole function. */
export const hogFunction = functionItem
  .extend({
    deleted: z.boolean(),
    on_error: onError,
    bytecode: z.array(z.unknown()).nullable(),
    transpiled: z.string().nullable(),
    inputs_schema: z.array(freeForm),
    inputs: z
      .record(z.string(), freeForm)
      .meta({ description: 'A secret input is shown as `{"secret": true}`.' }),
    masking: freeForm.nullable(),
    mappings: z.array(freeForm).nullable(),
    template_id: z.string().nullable(),
    delivery: deliveryPolicy.nullable(),
    paused: z.boolean().meta({
      description: 'Whether its invocations wait without being attempted. New ones are queued.',
    }),
    version: z.int().meta({ description: 'Counts the changes of what the function does.' }),
    draft: functionContent.nullable().meta({
      description: 'A change that does not run: all that the function would be made of. Null: there is none.',
    }),
    warnings: z.array(z.string()).meta({
      description:
        'What is most likely wrong, although the function can be stored: calls of what does not exist.',
    }),
    compile_error: z
      .string()
      .nullable()
      .meta({
        description:
          'Why the function could not be compiled again after something that its filters name had changed. The last ' +
          'version that could be compiled runs on.',
      }),
  })
  .meta({ id: 'Function' });
export type FunctionView = z.output<typeof hogFunction>;

export function functionItemView(
  row: ShownFunctionRow,
  template: Template | undefined,
): z.output<typeof functionItem> {
  return {
    ...{ id: row.id, type: row.type, name: row.name, description: row.description },
    created_at: row.created_at,
    created_by: row.creator && basicUserView(row.creator),
    updated_at: row.updated_at,
    ...{ enabled: row.enabled, hog: row.hog, filters: row.filters, icon_url: row.icon_url },
    template: template ? templateView(template) : null,
    status: statusOf(row),
    execution_order: row.execution_order,
    draft_updated_at: row.draft_updated_at,
  };
}

export function functionView(row: ShownFunctionRow, template: Template | undefined): FunctionView {
  return {
    ...functionItemView(row, template),
    ...(shownContent(row) as Pick<FunctionView, 'inputs_schema' | 'inputs' | 'masking' | 'mappings'>),
    ...{ deleted: row.deleted_at !== null, on_error: row.on_error },
    ...{ bytecode: row.bytecode, transpiled: row.transpiled, template_id: row.template_id },
    ...{ delivery: row.delivery, paused: row.paused },
    draft: row.draft && (shownDraft(row, row.draft) as ContentView),
    ...{ version: row.version, warnings: row.warnings, compile_error: row.compile_error },
  };
}

const fields = {
  name: optionalText(400).nullable(),
  description: z.string().max(10_000),
  enabled: z.boolean(),
  deleted: z.boolean(),
  hog: contentFields.hog,
  inputs_schema: z.array(inputSchema).max(1_000).nullable(),
  inputs: contentFields.inputs.nullable(),
  filters: filters.nullable(),
  masking: masking.nullable(),
  mappings: z.array(mapping).max(100).nullable(),
  icon_url: z.string().max(2_000).nullable(),
  template_id: z.string().max(400).nullable(),
  execution_order: order.nullable(),
  on_error: onError,
  delivery: deliveryPolicy
    .nullable()
    .meta({ description: 'Takes the place of the whole policy. Null: none.' }),
  paused: z.boolean().meta({ description: 'True: invocations wait without being attempted.' }),
  _create_in_folder: z.string().meta({ description: 'Has no effect.' }),
};

export const newFunction = z
  .object({ type, ...fields })
  .partial()
  .meta({ anyOf: [{ required: ['hog'] }, { required: ['template_id'] }] });
export const wholeFunction = z.object({ type, ...fields }).partial();
export const changedFunction = z
  .object({
    type,
    ...fields,
    base_updated_at: instant.meta({
      description:
        'The `updated_at` on which the change is based, or for a draft its `draft_updated_at`. If that has changed since, ' +
        'the answer is 409 with the code `stale_update`.',
    }),
  })
  .partial();
export const newOrders = z.object({
  // Nothing is said to be an empty order, which the command refuses.
  orders: z
    .preprocess((value) => value ?? {}, z.record(z.string(), order))
    .meta({ description: 'The new places of transformations by their ids.' }),
});

const flag = z.enum(['true', 'false', '1', '0']);

/** Where a change goes. A word that is misspelt is refused: the change would run although nobody wanted that yet. */
export const changeQuery = z.object({
  draft: flag.optional().meta({
    description:
      '`true`: keeps the change of what the function does as a draft, which does not run. All else in the body takes ' +
      'effect at once.',
  }),
});
export const isSet = (value: z.output<typeof flag> | undefined) => value === 'true' || value === '1';
