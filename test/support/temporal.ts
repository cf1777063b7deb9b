import { Client, Connection } from '@temporalio/client';
import { closableCalls } from '../../schedules/closable-calls.ts';
import { allocated } from './allocated.ts';
import { takeNamespace } from './namespaces.ts';

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
  const made = { address, namespace: takeNamespace(stateDir) };
  allocated.push(made);
  return made;
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
