import { z } from 'zod';
import type { ProjectSummaryRow } from '../../db/organizations.ts';
import type { MemberProjectRow } from '../../db/projects.ts';
import { freeForm, text, timestamp, timezone } from '../fields.ts';

export const projectSummary = z
  .object({
    id: z.int(),
    uuid: z.uuid(),
    organization: z.uuid(),
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
  })
  .meta({ id: 'Project' });

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
};

export const newProject = z.object({ name: text(200).default('Default project'), ...writable }).partial({
  timezone: true,
  is_demo: true,
  completed_snippet_onboarding: true,
  has_completed_onboarding_for: true,
  access_control: true,
  app_urls: true,
  anonymize_ips: true,
  test_account_filters: true,
  flags_persistence_default: true,
});
export const projectPatch = z.object({ name: text(200), ...writable }).partial();
