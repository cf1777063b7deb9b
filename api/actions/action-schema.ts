import { z } from 'zod';
import type { ActionInput } from '../../actions/commands/prepare.ts';
import type { ActionRow } from '../../actions/rows/actions.ts';
import { ACTION_LIMITS } from '../../actions/rules/limits.ts';
import { freeForm, instant, optionalText, timestamp } from '../fields.ts';
import { basicUser } from '../tenancy/user-schema.ts';

const LONGEST_TEXT = 10_000;
const MATCHING = ['exact', 'contains', 'regex'] as const;

/** A text to compare with. Spaces count. */
const compared = z.string().min(1).max(LONGEST_TEXT).nullable().default(null);
/** PostHog knows no empty choice, so an empty text is refused like any other wrong one. */
const matching = z.enum(MATCHING).nullable().default(null);

const step = z
  .object({
    event: compared.meta({ description: 'The name of the event. Null: any event.' }),
    properties: z
      .array(freeForm)
      .nullable()
      .default(null)
      .meta({ description: 'Property filters. The event must pass all of them.' }),
    selector: compared.meta({
      description: 'A CSS selector of the clicked element. It counts only if the event is `$autocapture`.',
    }),
    tag_name: compared.meta({ description: 'The tag of the clicked element; like `selector`.' }),
    text: compared.meta({ description: 'The text of the clicked element; like `selector`.' }),
    text_matching: matching.meta({ description: 'Null: `exact`.' }),
    href: compared.meta({ description: 'Where the clicked link leads; like `selector`.' }),
    href_matching: matching.meta({ description: 'Null: `exact`.' }),
    url: compared.meta({ description: 'The `$current_url` of the event.' }),
    url_matching: matching.meta({ description: 'Null: `contains`.' }),
  })
  .meta({ id: 'ActionStep' });

export const action = z
  .object({
    id: z.int(),
    team_id: z.int(),
    name: z.string().nullable(),
    description: z.string(),
    tags: z.array(z.string()),
    post_to_slack: z.boolean(),
    slack_message_format: z.string(),
    steps: z.array(step),
    created_at: timestamp,
    created_by: basicUser.nullable(),
    updated_at: timestamp,
    deleted: z.boolean(),
    is_calculating: z.literal(false),
    last_calculated_at: timestamp.meta({
      description: 'When what the action matches was changed last.',
    }),
    is_action: z.literal(true),
    bytecode: z
      .array(z.unknown())
      .meta({ description: 'The compiled steps. It is true for the events that the action matches.' }),
    bytecode_error: z.null(),
    pinned_at: timestamp.nullable(),
    creation_context: z.null(),
  })
  .meta({ id: 'Action' });

export function actionView({
  project_id,
  version: _,
  changed_at,
  ...row
}: ActionRow): z.output<typeof action> {
  return {
    ...row,
    team_id: project_id,
    is_calculating: false,
    last_calculated_at: changed_at,
    is_action: true,
    bytecode_error: null,
    creation_context: null,
  };
}

const pin = z
  .unknown()
  .optional()
  .superRefine((value, context) => {
    const isPlain = value === undefined || value === null || value === '' || typeof value === 'boolean';
    if (isPlain || (typeof value === 'string' && instant.safeParse(value).success)) return;
    context.addIssue({
      code: 'invalid_format',
      format: 'datetime',
      input: typeof value === 'string' ? value : '',
    });
  })
  .meta({
    description: 'True: pinned now. A time: pinned then. False, null or empty: not pinned.',
    anyOf: [{ type: 'string', format: 'date-time' }, { type: 'boolean' }, { type: 'null' }],
  });

const tag = z.string().max(ACTION_LIMITS.tagCharacters);

/** The body of a new action and of a change. All fields may be left out. */
export const actionInput = z
  .object({
    name: optionalText(400).nullable().meta({
      description: 'Unique among the actions of the project. Null or empty: the action has no name.',
    }),
    description: optionalText(LONGEST_TEXT),
    tags: z.array(tag).max(ACTION_LIMITS.tags).meta({ description: 'Are kept in lower case, each once.' }),
    post_to_slack: z.boolean().meta({ description: 'Is kept, and has no effect.' }),
    slack_message_format: optionalText(1200).meta({ description: 'Is kept, and has no effect.' }),
    steps: z
      .array(step)
      .max(ACTION_LIMITS.steps)
      .meta({
        description: `An event matches the action if it matches one of its steps. Without steps, each event does. All of them together have at most ${ACTION_LIMITS.bytes} bytes as JSON.`,
      }),
    pinned_at: pin,
    deleted: z.boolean().meta({ description: 'True deletes the action, and false brings it back.' }),
    _create_in_folder: z.unknown().meta({ type: 'string', description: 'Is ignored.', writeOnly: true }),
  })
  .partial();

/** Says what a body sets. */
export function inputOf({
  pinned_at: pin,
  _create_in_folder: _,
  ...rest
}: z.output<typeof actionInput>): ActionInput {
  if (pin === undefined) return rest;
  if (pin === true) return { ...rest, pinned_at: new Date().toISOString() };
  return { ...rest, pinned_at: typeof pin === 'string' && pin !== '' ? instant.parse(pin) : null };
}
