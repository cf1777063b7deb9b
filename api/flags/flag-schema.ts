import { z } from 'zod';
import type { FlagChange } from '../../flags/commands/change.ts';
import { FLAG_ORDERS, type FlagChoice, type FlagRow } from '../../flags/rows/flags.ts';
import { FLAG_LIMITS } from '../../flags/rules/limits.ts';
import { STALE_DAYS, statusOf } from '../../flags/rules/status.ts';
import { parseExactJson } from '../../values/exact-json.ts';
import { freeForm, optionalText, timestamp } from '../fields.ts';
import { serialOf } from '../serial.ts';
import { basicUser } from '../tenancy/user-schema.ts';

const RUNTIMES = ['all', 'client', 'server'] as const;
const BUCKETING = ['distinct_id', 'device_id'] as const;

export const featureFlag = z
  .object({
    id: z.int(),
    name: z.string().meta({ description: 'What people read about the flag.' }),
    key: z.string(),
    filters: freeForm.meta({
      description: 'The condition sets, variants and payloads: docs/flags.md.',
    }),
    deleted: z.boolean(),
    active: z.boolean(),
    archived: z.boolean(),
    created_by: basicUser.nullable(),
    created_at: timestamp,
    updated_at: timestamp,
    version: z.int(),
    last_modified_by: basicUser.nullable(),
    ensure_experience_continuity: z.boolean(),
    experiment_set: z.array(z.int()),
    experiment_set_metadata: z.array(freeForm),
    surveys: z.array(freeForm),
    features: z.array(freeForm),
    rollback_conditions: z.null(),
    performed_rollback: z.literal(false),
    can_edit: z.literal(true),
    tags: z.array(z.string()),
    evaluation_contexts: z.array(z.string()),
    usage_dashboard: z.null(),
    analytics_dashboards: z.array(z.int()),
    has_enriched_analytics: z.literal(false),
    user_access_level: z.literal('editor'),
    is_remote_configuration: z.boolean(),
    has_encrypted_payloads: z.boolean(),
    status: z.string().meta({ description: 'ACTIVE, INACTIVE, STALE, ARCHIVED or DELETED.' }),
    evaluation_runtime: z.enum(RUNTIMES),
    bucketing_identifier: z.enum(BUCKETING),
    last_called_at: timestamp.nullable(),
    is_used_in_replay_settings: z.literal(false),
    is_eligible_for_experiment: z.boolean(),
  })
  .meta({ id: 'FeatureFlag' });

export function flagView(row: FlagRow): z.output<typeof featureFlag> {
  const {
    project_id: _,
    filters: text,
    sealed_payloads: _sealed,
    asks: _asks,
    asks_cohorts: _of,
    ...rest
  } = row;
  const filters = parseExactJson(text) as Record<string, unknown>;
  return {
    ...rest,
    filters,
    experiment_set: [],
    experiment_set_metadata: [],
    surveys: [],
    features: [],
    rollback_conditions: null,
    performed_rollback: false,
    can_edit: true,
    usage_dashboard: null,
    analytics_dashboards: [],
    has_enriched_analytics: false,
    user_access_level: 'editor',
    status: statusOf(row, Date.now()).status,
    is_used_in_replay_settings: false,
    is_eligible_for_experiment: !row.is_remote_configuration && row.bucketing_identifier === 'distinct_id',
  };
}

const ignored = z.unknown().meta({ description: 'Is ignored.', writeOnly: true });
const names = (most: number) => z.array(z.string().trim().min(1).max(FLAG_LIMITS.tagCharacters)).max(most);

export const tagNames = names(FLAG_LIMITS.tags);

/** Tags as they are stored: in small letters, each once. */
export const tagsOf = (tags: readonly string[]): string[] => [
  ...new Set(tags.map((tag) => tag.toLowerCase())),
];

/** The body of a new flag and of a change. All fields may be left out of a change. */
export const flagInput = z
  .object({
    key: z.string().meta({ description: 'Unique among the flags of the project. Letters, digits, - and _.' }),
    name: optionalText(FLAG_LIMITS.nameCharacters),
    filters: freeForm.meta({
      description:
        'A change replaces the parts that it names, such as `groups` or `payloads`, and keeps the others. `{}` changes nothing.',
    }),
    active: z.boolean(),
    archived: z.boolean(),
    deleted: z.boolean().meta({ description: 'True deletes the flag, and false brings it back.' }),
    ensure_experience_continuity: z.boolean().nullable().meta({
      description: 'The flag stays what it was when an anonymous user becomes known.',
    }),
    is_remote_configuration: z.boolean().nullable(),
    evaluation_runtime: z.enum(RUNTIMES).nullable(),
    bucketing_identifier: z.enum(BUCKETING).nullable(),
    evaluation_contexts: names(FLAG_LIMITS.contexts),
    tags: tagNames,
    has_encrypted_payloads: z.boolean().nullable().meta({
      description:
        'Payloads of a flag for remote configuration are stored encrypted. Everybody reads a mark in their place, and `remote_config/` tells them. A mark that is sent back keeps the payload.',
    }),
    version: z.int().meta({
      description:
        'The version that you saw. With `original_flag`, a change of a field that somebody else has changed since is refused with 409.',
    }),
    original_flag: freeForm.nullable().meta({ description: 'The flag as you saw it.', writeOnly: true }),
    analytics_dashboards: z
      .array(z.unknown())
      .refine((ids) => ids.length === 0, {
        error: (issue) =>
          `Invalid pk "${JSON.stringify((issue.input as unknown[])[0]).slice(0, 60)}" - object does not exist.`,
      })
      .meta({ description: 'Must be empty: there are no dashboards.' }),
    creation_context: ignored,
    _create_in_folder: ignored,
  })
  .partial();

/** The body of a new flag. */
export const newFlag = flagInput.required({ key: true });

/** Says what a body sets. */
export function changeOf(body: z.output<typeof flagInput>): FlagChange {
  const { creation_context: _, _create_in_folder: _folder, analytics_dashboards: _none, ...rest } = body;
  const { ensure_experience_continuity: continuity, is_remote_configuration: remote } = rest;
  const { has_encrypted_payloads: encrypts } = rest;
  const {
    evaluation_runtime: runtime,
    bucketing_identifier: bucketing,
    tags,
    original_flag,
    ...others
  } = rest;
  const set = <T>(value: T | null | undefined, otherwise: T) =>
    value === undefined ? undefined : (value ?? otherwise);
  return {
    ...others,
    original_flag: original_flag ?? undefined,
    ensure_experience_continuity: set(continuity, false),
    is_remote_configuration: set(remote, false),
    has_encrypted_payloads: set(encrypts, false),
    evaluation_runtime: set(runtime, 'all'),
    bucketing_identifier: set(bucketing, 'distinct_id'),
    tags: tags && tagsOf(tags),
  };
}

const LONGEST_SEARCH = 200;

const either = z.enum(['true', 'false']).optional();

function textsIn(text: string): string[] | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return Array.isArray(value) && value.every((one) => typeof one === 'string') ? value : undefined;
  } catch {
    return undefined;
  }
}

const texts = (description: string) =>
  z
    .string()
    .max(20_000)
    .optional()
    .meta({ description })
    .refine(
      (text) => text === undefined || textsIn(text) !== undefined,
      'This must be a JSON list of strings.',
    );

/** Reads ids that are listed as JSON or separated by commas. Others are left out. */
function idsIn(text: string | undefined): number[] | undefined {
  const ids = (text ?? '').split(/[\s,[\]"]+/).flatMap((one) => serialOf(one) ?? []);
  return ids.length > 0 ? ids : undefined;
}

/** By what flags are chosen from a list. */
export const flagChoice = z.object({
  key: z.string().max(400).optional().meta({ description: 'Only the flag with exactly this key.' }),
  search: z
    .string()
    .trim()
    .optional()
    .meta({
      description: 'A part of the key or of the name. For a space in it, a key may have `-` or `_`.',
      maxLength: LONGEST_SEARCH,
    })
    .refine(
      (text) => (text?.length ?? 0) <= LONGEST_SEARCH,
      `Search term cannot exceed ${LONGEST_SEARCH} characters`,
    ),
  active: z
    .enum(['true', 'false', 'STALE'])
    .optional()
    .meta({ description: '`STALE`: active flags that seem to be of no use any more.' }),
  archived: either.meta({ description: 'Archived flags are listed only with `true`.' }),
  created_by_id: z
    .string()
    .max(20_000)
    .optional()
    .meta({ description: 'Ids of users, as a JSON list or separated by commas. What is no id is ignored.' }),
  eligible_for_experiment: either.meta({ description: '`true`: only flags with at least two variants.' }),
  tags: texts('A JSON list of tags. Flags with one of them are listed.'),
  excluded_tags: texts('A JSON list of tags. Flags with one of them are left out.'),
  excluded_properties: texts('A JSON list of keys. Flags with one of these keys are left out.'),
  has_evaluation_contexts: either.meta({ description: 'Whether the flag is for some contexts only.' }),
  evaluation_runtime: z.enum(RUNTIMES).optional(),
  type: z.enum(['boolean', 'multivariant', 'experiment', 'remote_config']).optional(),
});

/** In which order flags are listed. */
export const flagOrder = z
  .enum(FLAG_ORDERS.flatMap((column) => [column, `-${column}`]) as [string, ...string[]])
  .optional()
  .meta({ description: 'A field, with `-` before it for the other direction. By default `-created_at`.' });

/** Says by what a query chooses flags. */
export function choiceOf(query: z.output<typeof flagChoice> & { order?: string | undefined }): FlagChoice {
  const {
    active,
    archived,
    created_by_id: createdBy,
    evaluation_runtime: runtime,
    key,
    search,
    type,
  } = query;
  const list = (text: string | undefined) => (text === undefined ? undefined : textsIn(text));
  const contexts = query.has_evaluation_contexts;
  return {
    ...{ key, search, runtime, type, order: query.order as FlagChoice['order'] },
    createdBy: idsIn(createdBy),
    hasTwoVariants: query.eligible_for_experiment === 'true',
    active: active === undefined || active === 'STALE' ? undefined : active === 'true',
    staleDays: active === 'STALE' ? STALE_DAYS : undefined,
    archived: archived === 'true',
    tags: list(query.tags),
    excludedTags: list(query.excluded_tags),
    excludedKeys: list(query.excluded_properties),
    hasContexts: contexts === undefined ? undefined : contexts === 'true',
  };
}
