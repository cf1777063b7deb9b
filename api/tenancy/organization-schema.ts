import { z } from 'zod';
import type { MemberOrganizationRow } from '../../db/organizations.ts';
import { freeForm, text, timestamp } from '../fields.ts';
import { projectSummary, projectSummaryView } from './project-schema.ts';

/** The level that PostHog asks for to install plugins. Sluice has no plugins and always answers the same. */
const PLUGINS_ACCESS_LEVEL = 9;

export const organization = z
  .object({
    id: z.guid(),
    name: z.string(),
    slug: z.string(),
    logo_media_id: z.guid().nullable(),
    created_at: timestamp,
    updated_at: timestamp,
    membership_level: z.int(),
    plugins_access_level: z.int(),
    teams: z.array(projectSummary),
    projects: z.array(z.object({ id: z.int(), organization_id: z.guid(), name: z.string() })),
    available_product_features: z.array(freeForm),
    is_member_join_email_enabled: z.boolean(),
    metadata: z.object({ instance_tag: z.string() }),
    customer_id: z.string().nullable(),
    enforce_2fa: z.boolean().nullable(),
    members_can_invite: z.boolean().nullable(),
    members_can_use_personal_api_keys: z.boolean(),
    member_count: z.int(),
    is_ai_data_processing_approved: z.boolean().nullable(),
    default_experiment_stats_method: z.enum(['bayesian', 'frequentist']).nullable(),
  })
  .meta({ id: 'Organization' });

export function organizationView(
  row: MemberOrganizationRow,
  instanceTag: string,
): z.output<typeof organization> {
  return {
    id: row.id,
    name: row.name,
    slug: row.slug,
    logo_media_id: row.logo_media_id,
    created_at: row.created_at,
    updated_at: row.updated_at,
    membership_level: row.membership_level,
    plugins_access_level: PLUGINS_ACCESS_LEVEL,
    teams: row.projects.map(projectSummaryView),
    projects: row.projects.map(({ id, organization_id, name }) => ({ id, organization_id, name })),
    available_product_features: [],
    is_member_join_email_enabled: row.is_member_join_email_enabled,
    metadata: { instance_tag: instanceTag },
    customer_id: row.customer_id,
    enforce_2fa: row.enforce_2fa,
    members_can_invite: row.members_can_invite,
    members_can_use_personal_api_keys: row.members_can_use_personal_api_keys,
    member_count: row.member_count,
    is_ai_data_processing_approved: row.is_ai_data_processing_approved,
    default_experiment_stats_method: row.default_experiment_stats_method,
  };
}

const writable = {
  name: text(64),
  /** Sluice stores no media. It keeps any UUID for the client that set it. */
  logo_media_id: z.guid().nullable().optional(),
  is_member_join_email_enabled: z.boolean().optional(),
  enforce_2fa: z.boolean().nullable().optional(),
  members_can_invite: z.boolean().nullable().optional(),
  members_can_use_personal_api_keys: z.boolean().optional(),
  is_ai_data_processing_approved: z.boolean().nullable().optional(),
  default_experiment_stats_method: z.enum(['bayesian', 'frequentist']).nullable().optional(),
};

export const newOrganization = z.object(writable);
export const organizationPatch = newOrganization.partial();

/** An organization in the list of a user. */
export const organizationSummary = organization
  .pick({
    id: true,
    name: true,
    slug: true,
    logo_media_id: true,
    membership_level: true,
    members_can_use_personal_api_keys: true,
  })
  .meta({ id: 'OrganizationSummary' });

export function organizationSummaryView(row: MemberOrganizationRow): z.output<typeof organizationSummary> {
  return {
    id: row.id,
    name: row.name,
    slug: row.slug,
    logo_media_id: row.logo_media_id,
    membership_level: row.membership_level,
    members_can_use_personal_api_keys: row.members_can_use_personal_api_keys,
  };
}
