/** Why a change of a person or group that an event asked for was not made. The event itself is stored. */
export const PERSON_REASONS = [
  'cannot_merge_with_illegal_distinct_id',
  'cannot_merge_already_identified',
  'person_processing_disabled',
  'person_properties_too_large',
  'group_identify_incomplete',
  'group_type_too_long',
  'group_key_too_long',
  'group_type_limit_reached',
  'group_properties_too_large',
] as const;

export type PersonReason = (typeof PERSON_REASONS)[number];

export interface PersonNotice {
  reason: PersonReason;
  detail: Record<string, unknown>;
}
