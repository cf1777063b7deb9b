import { z } from 'zod';
import type { ProjectSummaryRow } from '../../db/organizations.ts';
import type { MemberProjectRow } from '../../db/projects.ts';
import { freeForm, text, timestamp, timezone } from '../fields.ts';

export const projectSummary = z
  .object({
    id: z.int(),
    uuid: z.guid(),
    organization: z.guid(),
    project_id: z.int(),
    api_token: z.string(),
    name: z.string(),
    completed_snippet_onboarding: z.boolean(),
    has_completed_onboarding_for: freeForm,
    ingested_event: z.boolean(),
    is_demo: z.boolean(),
    timezone: z.string(),
    access_control: z.boolean(),
  })
  .meta({ id: 'ProjectSummary' });

export function projectSummaryView(row: ProjectSummaryRow): z.output<typeof projectSummary> {
  return {
    id: row.id,
    uuid: row.uuid,
    organization: row.organization_id,
    project_id: row.id,
    api_token: row.api_token,
    name: row.name,
    completed_snippet_onboarding: row.completed_snippet_onboarding,
    has_completed_onboarding_for: row.has_completed_onboarding_for,
    ingested_event: row.ingested_event,
    is_demo: row.is_demo,
    timezone: row.timezone,
    access_control: row.access_control,
  };
}

export const groupType = z.object({
  group_type: z.string(),
  group_type_index: z.int(),
  name_singular: z.string().nullable(),
  name_plural: z.string().nullable(),
});

/**
 * Settings of products that Sluice does not have, as tools set them: `null` is what a project begins with. They change
 * nothing, but a tool that sets one finds it set.
 */
const keptSettings = z.object({
  heatmaps_opt_in: z.boolean().nullable(),
  autocapture_exceptions_opt_in: z.boolean().nullable(),
  autocapture_web_vitals_opt_in: z.boolean().nullable(),
  session_recording_opt_in: z.boolean().nullable(),
  surveys_opt_in: z.boolean().nullable(),
  cookieless_server_hash_mode: z.int().min(0).max(2).nullable(),
  recording_domains: z.array(z.string().max(200)).max(1_000).nullable(),
});
type KeptSettings = z.output<typeof keptSettings>;
const KEPT = Object.keys(keptSettings.shape) as (keyof KeptSettings)[];

/** The kept settings of a project, or of a change those that it names. */
export const keptIn = (fields: Readonly<Record<string, unknown>>): Partial<KeptSettings> =>
  Object.fromEntries(KEPT.filter((key) => fields[key] !== undefined).map((key) => [key, fields[key]]));

export const project = projectSummary
  .extend({
    created_at: timestamp,
    updated_at: timestamp,
    effective_membership_level: z.int(),
    has_group_types: z.boolean(),
    group_types: z.array(groupType),
    app_urls: z.array(z.string()),
    anonymize_ips: z.boolean(),
    test_account_filters: z.array(z.unknown()),
    flags_persistence_default: z.boolean().nullable(),
    secret_api_token: z.string().nullable(),
    secret_api_token_backup: z.string().nullable(),
    ...keptSettings.shape,
  })
  .meta({ id: 'Project' });

const UNSET = Object.fromEntries(KEPT.map((key) => [key, null])) as KeptSettings;

/** The secret tokens of a project, as the caller may see them. */
export type ShownSecrets = Pick<MemberProjectRow, 'secret_api_token' | 'secret_api_token_backup'>;

export function projectView(row: MemberProjectRow, secrets: ShownSecrets): z.output<typeof project> {
  return {
    ...projectSummaryView(row),
    created_at: row.created_at,
    updated_at: row.updated_at,
    effective_membership_level: row.membership_level,
    has_group_types: row.group_types.length > 0,
    group_types: row.group_types,
    app_urls: row.app_urls,
    anonymize_ips: row.anonymize_ips,
    test_account_filters: row.test_account_filters,
    flags_persistence_default: row.flags_persistence_default,
    secret_api_token: secrets.secret_api_token,
    secret_api_token_backup: secrets.secret_api_token_backup,
    ...UNSET,
    ...keptIn(row.kept_settings),
  };
}

const writable = {
  timezone,
  is_demo: z.boolean(),
  completed_snippet_onboarding: z.boolean(),
  has_completed_onboarding_for: freeForm,
  access_control: z.boolean(),
  app_urls: z.array(z.string().max(200)),
  anonymize_ips: z.boolean(),
  test_account_filters: z.array(freeForm),
  flags_persistence_default: z.boolean().nullable(),
  ...keptSettings.shape,
};

export const newProject = z
  .object({ name: text(200).default('Default project') })
  .extend(z.object(writable).partial().shape);
export const projectPatch = z.object({ name: text(200), ...writable }).partial();
