import type { Command } from 'commander';
import type { KeyHolder } from '../../db/encryption-keys.ts';
import { LOCKS } from '../../db/locks.ts';
import type { Pool } from '../../db/pool.ts';
import type { SealedColumn } from '../../db/sealed-columns.ts';
import {
  findKeyState,
  forgetKey,
  type KeyPlace,
  type KeyState,
  keyProblems,
  resealSecrets,
  rotateKeys,
} from '../../tenancy/encryption-keys.ts';
import { sealedColumns } from '../../tenancy/product.ts';
import type { LoadProducts } from '../command-file.ts';
import { CommandError, keyPlace, say, sayJson, withPool } from '../context.ts';

/** Processes read the file again within a few seconds. */
const PATIENCE = 30_000;

/** Does the work while no other command changes keys. */
async function alone<T>(pool: Pool, work: () => Promise<T>): Promise<T> {
  const client = await pool.connect();
  try {
    const { rows } = await client.query('select pg_try_advisory_lock($1) as locked', [LOCKS.keys]);
    if (!rows[0].locked) throw new CommandError('Another command changes the keys at the moment.');
    return await work();
  } finally {
    // The lock ends with its connection.
    client.release(true);
  }
}

const holderLine = ({ process, pid, host, keys: [first, ...others] }: KeyHolder) =>
  `${process} (process ${pid} on ${host}): ` +
  (first ? `seals with ${first.id}${others.map(({ id }) => `, reads ${id}`).join('')}` : 'has no keys');

/** Describes the keys. No line contains a key. */
function describeKeys({ keys, secrets, holders, rotation }: KeyState): string[] {
  const ids = [...new Set([...keys.map((one) => one.id), ...secrets.flatMap(({ keyId }) => keyId ?? [])])];
  const lines = ids.map((id) => {
    const place = keys.findIndex((one) => one.id === id);
    const role = place === 0 ? 'seals new secrets' : place > 0 ? 'reads older secrets' : 'is missing';
    const needed = secrets.filter(({ keyId }) => keyId === id);
    const rows = needed.map(({ table, column, values }) => `${values} in ${table}.${column}`).join(', ');
    const held = holders.filter((one) => one.keys.some((key) => key.id === id)).length;
    return `key ${id}: ${role}. Secrets: ${rows || 'none'}. Processes: ${held} of ${holders.length}.`;
  });
  if (rotation) {
    lines.push(
      rotation.finished_at === null
        ? `A rotation to the key ${rotation.id} is not finished.`
        : `The latest rotation, to the key ${rotation.id}, was finished at ${rotation.finished_at}.`,
    );
  }
  return [...lines, ...holders.map(holderLine)];
}

export function keysCommand(program: Command, products: LoadProducts): void {
  const withKeys = (work: (pool: Pool, place: KeyPlace, columns: readonly SealedColumn[]) => Promise<void>) =>
    withPool(async (pool, config) => work(pool, keyPlace(config), sealedColumns(await products())));

  const keys = program
    .command('keys')
    .description('Show the keys that encrypt stored secrets: what needs them, and which processes hold them.')
    .option('--json', 'print the result as JSON')
    .action(({ json }: { json?: boolean }) =>
      withKeys(async (pool, place, columns) => {
        const state = await findKeyState(pool, columns, place.read());
        const problems = keyProblems(state);
        if (json) sayJson({ ...state, problems }, 2);
        else
          for (const line of [...describeKeys(state), ...problems.map((one) => `WRONG  ${one}`)]) say(line);
        if (problems.length > 0) process.exitCode = 1;
      }),
    );

  keys
    .command('rotate')
    .description(
      'Put a new key in the place of the one that encrypts, and encrypt all secrets with it. Can be repeated at any point.',
    )
    .action(() =>
      withKeys(async (pool, place, columns) => {
        await alone(pool, () =>
          rotateKeys({ queryable: pool, columns, place, report: say, patience: PATIENCE }),
        );
      }),
    );

  keys
    .command('seal')
    .description('Encrypt all stored secrets with the first key.')
    .action(() =>
      withKeys(async (pool, place, columns) => {
        await alone(pool, async () => {
          const state = await findKeyState(pool, columns, place.read());
          const [first] = state.keys;
          const behind = state.holders.find(
            ({ keys: held }) => !held.some((one) => one.fingerprint === first?.fingerprint),
          );
          if (behind) {
            throw new CommandError(`A process does not hold the key ${first?.id}: ${holderLine(behind)}.`);
          }
          const { sealed, closed } = await resealSecrets(pool, columns, place.read());
          say(`${sealed} secrets were sealed with the key ${first?.id}.`);
          if (closed > 0)
            throw new CommandError(`${closed} secrets cannot be opened with the keys in ${place.name}.`);
        });
      }),
    );

  keys
    .command('forget <id>')
    .description('Remove a key that no stored secret and no process needs.')
    .action((id: string) =>
      withKeys(async (pool, place, columns) => {
        await alone(pool, () => forgetKey({ queryable: pool, columns, place, report: say }, id));
      }),
    );
}
