import type { Command } from 'commander';
import { insertMembership } from '../../db/memberships.ts';
import { findOrganizationByName, type OrganizationRow } from '../../db/organizations.ts';
import { type Queryable, transaction } from '../../db/pool.ts';
import { projectIdsOf } from '../../db/projects.ts';
import { findUserByEmail, listUsers, type UserRow, updateUser } from '../../db/users.ts';
import { uuidv7 } from '../../db/uuid.ts';
import { ADMIN, MEMBER } from '../../tenancy/levels.ts';
import { createUser } from '../../tenancy/users.ts';
import { CommandError, say, withPool } from '../context.ts';

export async function requireUser(queryable: Queryable, email: string): Promise<UserRow> {
  const user = await findUserByEmail(queryable, email);
  if (!user) throw new CommandError(`There is no user with the e-mail address ${email}.`);
  return user;
}

export async function requireOrganization(queryable: Queryable, name?: string): Promise<OrganizationRow> {
  const found = await findOrganizationByName(queryable, name);
  if (found.length === 1) return found[0] as OrganizationRow;
  if (name !== undefined) throw new CommandError(`There is no organization with the id or slug ${name}.`);
  throw new CommandError(
    found.length === 0
      ? 'There is no organization yet. Run `npx sluice init` first.'
      : `There are several organizations. Choose one with --organization: ${found.map((one) => one.slug).join(', ')}`,
  );
}

const LEVELS: Record<string, number> = { member: MEMBER, admin: ADMIN };

export function userCommands(program: Command): void {
  const user = program.command('user').description('Manage users.');

  user
    .command('create <email>')
    .description('Create a user as a member of an organization.')
    .option('--organization <id or slug>', 'the organization; required if there are several')
    .option('--level <member|admin>', 'membership level in the organization', 'member')
    .option('--first-name <name>', 'first name of the user', '')
    .option('--last-name <name>', 'last name of the user', '')
    .action(
      (
        email: string,
        options: { organization?: string; level: string; firstName: string; lastName: string },
      ) =>
        withPool(async (pool) => {
          if (!/^[^\s@]+@[^\s@]+$/.test(email))
            throw new CommandError(`"${email}" is not an e-mail address.`);
          const level = LEVELS[options.level];
          if (level === undefined) {
            throw new CommandError(
              `--level: "${options.level}" is not a level. Use one of: ${Object.keys(LEVELS).join(', ')}`,
            );
          }
          const created = await transaction(pool, async (client) => {
            const organization = await requireOrganization(client, options.organization);
            const row = await createUser(client, {
              email,
              firstName: options.firstName,
              lastName: options.lastName,
            });
            if (!row) throw new CommandError(`A user with the e-mail address ${email} already exists.`);
            await insertMembership(client, {
              id: uuidv7(),
              organization_id: organization.id,
              user_id: row.id,
              level,
            });
            const [projectId] = await projectIdsOf(client, organization.id);
            await updateUser(client, row.id, {
              current_organization_id: organization.id,
              current_project_id: projectId ?? null,
            });
            return { row, organization };
          });
          say(
            `Created ${email} (${created.row.uuid}), ${options.level} of ${created.organization.name}. ` +
              `Create a key for this user: npx sluice key create ${email} --scopes '*'`,
          );
        }),
    );

  user
    .command('list')
    .description('List all users.')
    .action(() =>
      withPool(async (pool) => {
        for (const row of await listUsers(pool)) {
          say(`${row.uuid}  ${row.email}  ${row.is_active ? 'active' : 'deactivated'}`);
        }
      }),
    );

  for (const [name, active] of [
    ['deactivate', false],
    ['activate', true],
  ] as const) {
    user
      .command(`${name} <email>`)
      .description(
        active
          ? 'Activate a user: their keys work again.'
          : 'Deactivate a user: their keys stop working at once.',
      )
      .action((email: string) =>
        withPool(async (pool) => {
          const { id } = await requireUser(pool, email);
          await updateUser(pool, id, { is_active: active });
          say(`${email} is ${active ? 'active' : 'deactivated'}.`);
        }),
      );
  }
}
