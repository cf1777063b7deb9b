import type { Command } from 'commander';
import { changeQuota } from '../../flags/commands/quota.ts';
import { findQuota, type QuotaRow } from '../../flags/rows/quotas.ts';
import { OPERATOR } from '../../tenancy/actor.ts';
import { CommandError, say, withPool } from '../context.ts';
import { requireOrganization } from './user.ts';

/** Undefined: only the state is asked for. */
function requestsIn(text: string | undefined): number | null | undefined {
  if (text === undefined) return undefined;
  if (text === 'default') return null;
  if (text === 'unlimited') return 0;
  if (/^[1-9]\d{0,14}$/.test(text)) return Number(text);
  throw new CommandError(`"${text}" is no quota. Use a number of requests, \`unlimited\` or \`default\`.`);
}

function told({ flag_requests_per_month: own, period, granted, held }: QuotaRow, usual: number): string {
  const bound = own ?? usual;
  const whose = own === null ? ' (SLUICE_FLAG_REQUESTS_PER_MONTH)' : '';
  const used = `${granted - held} of it used in the month from ${period} on`;
  return bound === 0 ? `any number of requests${whose}` : `${bound} requests a month${whose}, ${used}`;
}

export function flagsCommand(program: Command): void {
  const flags = program.command('flags').description('Manage feature flags.');
  flags
    .command('quota [requests]')
    .description(
      'Show how many requests for flags an organization may make in a month, or set it: a number, `unlimited` or `default`.',
    )
    .option('--organization <id or slug>', 'the organization; required if there are several')
    .action((text: string | undefined, options: { organization?: string }) =>
      withPool(async (pool, config) => {
        const requests = requestsIn(text);
        const { id, name } = await requireOrganization(pool, options.organization);
        if (requests !== undefined) await changeQuota(pool, OPERATOR, id, requests);
        const row = (await findQuota(pool, id)) as QuotaRow;
        say(`${name}: ${told(row, config.SLUICE_FLAG_REQUESTS_PER_MONTH)}`);
      }),
    );
}
