import type { Command } from 'commander';
import { countMemberships } from '../../db/memberships.ts';
import {
  deletePersonalApiKey,
  findPersonalApiKeyById,
  listPersonalApiKeys,
  type PersonalApiKeyRow,
} from '../../db/personal-api-keys.ts';
import { type Queryable, transaction } from '../../db/pool.ts';
import { countMemberProjects } from '../../db/projects.ts';
import {
  issuePersonalApiKey,
  rollPersonalApiKey,
  TooManyKeysError,
} from '../../tenancy/personal-api-keys.ts';
import type { Product } from '../../tenancy/product.ts';
import { allScopes, scopeObjects } from '../../tenancy/scopes.ts';
import { isUuid } from '../../values/uuid.ts';
import type { LoadProducts } from '../command-file.ts';
import { CommandError, remark, say, withPool } from '../context.ts';
import { requireUser } from './user.ts';

const list = (text: string | undefined) =>
  (text ?? '')
    .split(',')
    .map((one) => one.trim())
    .filter((one) => one !== '');

function parseScopes(text: string, products: readonly Product[]): string[] {
  const scopes = list(text);
  const known = allScopes(products);
  const unknown = scopes.find((one) => !known.includes(one));
  if (unknown !== undefined || scopes.length === 0) {
    throw new CommandError(
      `--scopes: ${unknown === undefined ? 'name at least one scope' : `"${unknown}" is not a scope`}. A scope is * or one ` +
        `of these words followed by :read or :write: ${scopeObjects(products).join(', ')}`,
    );
  }
  return scopes;
}

function parseProjects(text: string | undefined): number[] {
  return list(text).map((one) => {
    if (!/^\d{1,9}$/.test(one)) throw new CommandError(`--projects: "${one}" is not a project id.`);
    return Number(one);
  });
}

function parseOrganizations(text: string | undefined): string[] {
  return list(text).map((one) => {
    if (!isUuid(one)) throw new CommandError(`--organizations: "${one}" is not an organization id.`);
    return one.toLowerCase();
  });
}

function parseExpiry(text: string | undefined): string | null {
  if (text === undefined) return null;
  const time = Date.parse(text);
  if (Number.isNaN(time))
    throw new CommandError(`--expires: "${text}" is not a date. Write 2027-01-31 or 2027-01-31T12:00:00Z.`);
  if (time <= Date.now()) throw new CommandError(`--expires: ${text} is in the past.`);
  return new Date(time).toISOString();
}

async function requireKey(queryable: Queryable, id: string): Promise<PersonalApiKeyRow> {
  const row = await findPersonalApiKeyById(queryable, id);
  if (!row)
    throw new CommandError(
      `There is no key with the id ${id}. \`npx sluice key list <email>\` shows the ids.`,
    );
  return row;
}

interface CreateOptions {
  label: string;
  scopes: string;
  projects?: string;
  organizations?: string;
  expires?: string;
}

export function keyCommands(program: Command, products: LoadProducts): void {
  const key = program.command('key').description('Manage personal API keys.');

  key
    .command('create <email>')
    .description('Create a key for a user and print it. Sluice cannot show it again.')
    .option('--label <text>', 'what the key is for', 'Created by the command line')
    .requiredOption('--scopes <list>', "comma-separated scopes, or '*'")
    .option('--projects <ids>', 'comma-separated ids of the only projects that the key may use')
    .option('--organizations <ids>', 'comma-separated ids of the only organizations that the key may use')
    .option('--expires <date>', 'date on which the key stops working')
    .action((email: string, options: CreateOptions) =>
      withPool(async (pool) => {
        const scopes = parseScopes(options.scopes, await products());
        const scopedTeams = parseProjects(options.projects);
        const scopedOrganizations = parseOrganizations(options.organizations);
        const expiresAt = parseExpiry(options.expires);
        if (options.label.length > 40) throw new CommandError('--label: at most 40 characters.');
        const user = await requireUser(pool, email);
        if ((await countMemberProjects(pool, user.id, scopedTeams)) < new Set(scopedTeams).size) {
          throw new CommandError(`--projects: ${email} is not a member of all these projects.`);
        }
        if (
          (await countMemberships(pool, user.id, scopedOrganizations)) < new Set(scopedOrganizations).size
        ) {
          throw new CommandError(`--organizations: ${email} is not a member of all these organizations.`);
        }
        const issued = await transaction(pool, (client) =>
          issuePersonalApiKey(client, {
            userId: user.id,
            label: options.label,
            scopes,
            scopedTeams,
            scopedOrganizations,
            expiresAt,
          }),
        ).catch((error) => {
          throw error instanceof TooManyKeysError ? new CommandError(error.message) : error;
        });
        remark(`Key ${issued.row.id} for ${email}. Store it now, Sluice cannot show it again:`);
        say(issued.value);
      }),
    );

  key
    .command('list <email>')
    .description('List the keys of a user.')
    .action((email: string) =>
      withPool(async (pool) => {
        const user = await requireUser(pool, email);
        for (const row of await listPersonalApiKeys(pool, user.id)) {
          const expiry = row.expires_at ? `, expires ${row.expires_at}` : '';
          say(`${row.id}  ${row.mask_value}  ${row.label}  [${row.scopes.join(' ')}]${expiry}`);
        }
      }),
    );

  key
    .command('roll <id>')
    .description('Replace the value of a key and print the new value. The old value stops working at once.')
    .action((id: string) =>
      withPool(async (pool) => {
        const row = await requireKey(pool, id);
        say(await rollPersonalApiKey(pool, row.id));
      }),
    );

  key
    .command('revoke <id>')
    .description('Delete a key. It stops working at once.')
    .action((id: string) =>
      withPool(async (pool) => {
        const row = await requireKey(pool, id);
        await deletePersonalApiKey(pool, row.id);
        say(`Revoked ${row.mask_value} (${row.label}).`);
      }),
    );
}
