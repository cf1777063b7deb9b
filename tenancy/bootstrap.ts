import { LOCKS } from '../db/locks.ts';
import { countOrganizations } from '../db/organizations.ts';
import { type Pool, transaction } from '../db/pool.ts';
import { createOrganization } from './organizations.ts';
import { issuePersonalApiKey } from './personal-api-keys.ts';
import { createUser } from './users.ts';

export interface Bootstrapped {
  personal_api_key: string;
  project_api_key: string;
  organization_id: string;
  project_id: number;
}

export interface BootstrapInput {
  organizationName?: string;
  email?: string;
  firstName?: string;
}

/**
 * Creates the first organization, project, user and key of an empty installation. Returns undefined if the installation
 * is not empty. If two processes start at once, only one of them creates anything. `beforeCommit` must save the key.
 * The key cannot be shown again, so a process that was killed between the commit and the saving would lose it.
 */
export async function bootstrap(
  pool: Pool,
  input: BootstrapInput = {},
  beforeCommit: (made: Bootstrapped) => void = () => undefined,
): Promise<Bootstrapped | undefined> {
  return transaction(pool, async (client) => {
    await client.query('select pg_advisory_xact_lock($1)', [LOCKS.bootstrap]);
    if ((await countOrganizations(client)) > 0) return undefined;
    const user = await createUser(client, {
      email: input.email ?? 'admin@localhost',
      firstName: input.firstName ?? 'Admin',
    });
    if (!user)
      throw new Error('the database has a user but no organization; create one with `npx sluice init`');
    const { organizationId, project } = await createOrganization(client, {
      name: input.organizationName ?? 'My organization',
      userId: user.id,
    });
    const key = await issuePersonalApiKey(client, { userId: user.id, label: 'First key', scopes: ['*'] });
    const made = {
      personal_api_key: key.value,
      project_api_key: project.api_token,
      organization_id: organizationId,
      project_id: project.id,
    };
    beforeCommit(made);
    return made;
  });
}
