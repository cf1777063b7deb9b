import { z } from 'zod';
import type { UserRow } from '../../db/users.ts';
import { freeForm } from '../fields.ts';

export const basicUser = z
  .object({
    id: z.int(),
    uuid: z.guid(),
    distinct_id: z.string(),
    first_name: z.string(),
    last_name: z.string(),
    email: z.string(),
    is_email_verified: z.boolean().nullable(),
    hedgehog_config: freeForm.nullable(),
    role_at_organization: z.string().nullable(),
  })
  .meta({ id: 'BasicUser' });

export type BasicUser = z.output<typeof basicUser>;

export function basicUserView(user: Pick<UserRow, keyof BasicUser>): BasicUser {
  return {
    id: user.id,
    uuid: user.uuid,
    distinct_id: user.distinct_id,
    first_name: user.first_name,
    last_name: user.last_name,
    email: user.email,
    is_email_verified: user.is_email_verified,
    hedgehog_config: user.hedgehog_config,
    role_at_organization: user.role_at_organization,
  };
}
