import { closeSync, openSync } from 'node:fs';
import path from 'node:path';
import { Client, Connection } from '@temporalio/client';
import { closableCalls } from '../../schedules/closable-calls.ts';
import { allocated } from './allocated.ts';
import { namespaceNames } from './names.ts';

export interface TestNamespace {
  address: string;
  namespace: string;
}

/** A Temporal namespace that no other test of the run uses. It is empty and stays behind until the run ends. */
export function allocateNamespace(): TestNamespace {
  const { TEST_TEMPORAL_ADDRESS: address, TEST_STATE_DIR: stateDir } = process.env;
  if (!address || !stateDir) {
    throw new Error('This test needs Temporal, but the run was started with TEST_NO_SERVICES=1.');
  }
  for (const namespace of namespaceNames()) {
    try {
      // Creating the file is the claim: of several test processes only one succeeds.
      closeSync(openSync(path.join(stateDir, 'namespaces', namespace), 'wx'));
      const made = { address, namespace };
      allocated.push(made);
      return made;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    }
  }
  throw new Error(
    'All Temporal namespaces of this run are taken; raise NAMESPACES in test/support/names.ts.',
  );
}

/** A client of a namespace. Its connection can be closed while a call is about to be repeated. */
export async function connectTo(
  { address, namespace }: TestNamespace,
  channelArgs: Record<string, number> = {},
): Promise<Client> {
  const closing = new AbortController();
  const interceptors = closableCalls(closing.signal);
  const connection = await Connection.connect({ address, channelArgs, interceptors });
  const close = connection.close.bind(connection);
  connection.close = () => {
    closing.abort();
    return close();
  };
  return new Client({ connection, namespace });
}

const CLEANING = 20_000;

/** Ends what would start workflows without end, for workers that are gone. Does what it can. */
export async function removeSchedules(of: TestNamespace): Promise<void> {
  const client = await connectTo(of).catch(() => undefined);
  if (!client) return;
  const remove = async () => {
    for await (const { scheduleId } of client.schedule.list()) {
      await client.schedule.getHandle(scheduleId).delete();
    }
  };
  await client.withDeadline(Date.now() + CLEANING, remove).catch(() => undefined);
  await client.connection.close();
}
