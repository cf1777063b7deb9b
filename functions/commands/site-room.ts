import type { Transaction } from '../../db/pool.ts';
import { refuse } from '../../refusals.ts';
import type { FunctionKey } from '../rows/functions.ts';
import { lockOrders } from '../rows/locks.ts';
import { siteBytes } from '../rows/site.ts';
import { MOST_SITE_BYTES } from '../rules/limits.ts';

const kilobytes = (bytes: number) => `${Math.ceil(bytes / 1024)} KB`;

/**
 * Refuses a function for browsers that no longer fits beside the others of its project. Only one change at a time can
 * look, so two of them cannot both take the last room.
 */
export async function requireSiteRoom(
  client: Transaction,
  key: FunctionKey,
  transpiled: string | null | undefined,
): Promise<void> {
  if (!transpiled) return;
  await lockOrders(client, key.projectId);
  const bytes = (await siteBytes(client, key)) + Buffer.byteLength(transpiled);
  if (bytes <= MOST_SITE_BYTES) return;
  throw refuse.invalid(
    'hog',
    `The enabled site functions of a project may have ${kilobytes(MOST_SITE_BYTES)} of JavaScript together, and with ` +
      `this one they have ${kilobytes(bytes)}. Make the code or the inputs shorter, or disable another site function.`,
  );
}
