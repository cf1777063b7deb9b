// Saves the history of one workflow run for the replay test, as test/workflows/histories/<name>.json:
//   node scripts/save-history.ts <name> <workflow id> [run id]
// The settings (TEMPORAL_ADDRESS, TEMPORAL_NAMESPACE …) determine the connection. Save one history for each kind of run
// in production. A change to a workflow that breaks the replay then fails a test instead of running workflows.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { Client, Connection } from '@temporalio/client';
import proto from '@temporalio/proto';
import { loadConfig } from '../config.ts';
import { connectionSettings } from '../schedules/connection.ts';

const { History } = proto.temporal.api.history.v1;
type History = proto.temporal.api.history.v1.History;
const FOLDER = path.join(import.meta.dirname, '../test/workflows/histories');

/** Saves the history of a run to a file. */
export async function saveHistory(
  client: Client,
  run: { workflowId: string; runId?: string },
  file: string,
): Promise<void> {
  const history = await client.workflow.getHandle(run.workflowId, run.runId).fetchHistory();
  mkdirSync(path.dirname(file), { recursive: true });
  writeFileSync(file, historyText(History.fromObject(history)));
}

/** Formats a history as JSON, one event in each line. */
export function historyText(history: History): string {
  const { events } = History.toObject(history, { longs: String, enums: String, bytes: String });
  const lines = (events as object[]).map((event) => JSON.stringify(event, withoutMachine));
  return `{"events":[\n${lines.join(',\n')}\n]}\n`;
}

/** Removes the identity of the machine and the stack traces with its paths. A replay does not need them. */
const withoutMachine = (key: string, value: unknown) =>
  key === 'stackTrace' || key === 'identity' ? undefined : value;

/** Loads a saved history for a replay. */
export function readHistory(file: string): History {
  return History.fromObject(JSON.parse(readFileSync(file, 'utf8')));
}

if (import.meta.main) {
  const [name, workflowId, runId] = process.argv.slice(2);
  if (!name || !/^[a-z0-9-]+$/.test(name) || !workflowId) {
    console.error('usage: node scripts/save-history.ts <name-with-dashes> <workflow id> [run id]');
    process.exit(64);
  }
  const config = loadConfig(process.env);
  const connection = await Connection.connect(connectionSettings(config));
  const file = path.join(FOLDER, `${name}.json`);
  await saveHistory(
    new Client({ connection, namespace: config.TEMPORAL_NAMESPACE }),
    { workflowId, ...(runId ? { runId } : {}) },
    file,
  );
  await connection.close();
  console.log(`saved ${file}`);
}
