import type { Queryable } from '../pool.ts';
import { closedSqlLogins, deleteSqlLogin } from '../sql-logins.ts';
import type { GivenAddresses } from './address.ts';
import { administer, connected } from './roles.ts';
import { dropLoginRole, openForLogins } from './sql-access.ts';

/** Drops the roles that see nothing any more: their access was revoked, or their project deleted. */
export async function dropClosedLogins(client: Queryable): Promise<void> {
  for (const role of await closedSqlLogins(client)) {
    await dropLoginRole(client, role);
    await deleteSqlLogin(client, role);
  }
}

/**
 * Does what a start does for SQL access: logins get the rights on views that this version has added, and the roles of
 * deleted projects go. Does nothing where nobody has a login.
 */
export async function keepSqlAccess(given: GivenAddresses): Promise<void> {
  const { rows } = await connected(given.ownerUrl ?? given.url, (client) =>
    client.query(
      `select exists (select from sql_logins
         where database = (select oid from pg_database where datname = current_database())) as some`,
    ),
  );
  if (!rows[0].some) return;
  await administer(given, async ({ client, roles }) => {
    await dropClosedLogins(client);
    await openForLogins(client, roles);
  });
}
