import type { Queryable } from '../db/pool.ts';
import { insertUser, type UserRow } from '../db/users.ts';
import { uuidv7 } from '../db/uuid.ts';
import { randomLetters } from './tokens.ts';

/** Creates a user. Returns undefined if the e-mail address is taken. */
export async function createUser(
  queryable: Queryable,
  input: { email: string; firstName?: string; lastName?: string },
): Promise<UserRow | undefined> {
  return insertUser(queryable, {
    uuid: uuidv7(),
    distinct_id: randomLetters(40),
    email: input.email,
    first_name: input.firstName ?? '',
    last_name: input.lastName ?? '',
  });
}
