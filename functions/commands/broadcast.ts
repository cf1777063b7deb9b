import { uuidv7 } from '../../db/uuid.ts';
import type { Bytecode } from '../../hog/bytecode/index.ts';
import type { Actor } from '../../tenancy/actor.ts';
import type { FunctionRow } from '../rows/functions.ts';
import type { ReplayRow } from '../rows/replays.ts';
import { compileContent, type PrepareDependencies } from './prepare.ts';
import { type ReplayDependencies, requireRunnable, startReplay } from './replay.ts';

export interface BroadcastInput {
  /** Conditions on persons. By default those of the function itself. */
  properties: unknown;
  ratePerSecond: number | null;
  /** Whether it only counts. */
  dryRun: boolean;
}

const SECRETLESS = { inputs: {}, mappings: [] };

/** Runs a function once for each person of its project that matches conditions, or counts them. */
export async function broadcastToPersons(
  deps: ReplayDependencies & PrepareDependencies,
  actor: Actor,
  row: FunctionRow,
  { properties = row.filters?.properties, ratePerSecond, dryRun }: BroadcastInput,
  signal?: AbortSignal,
): Promise<ReplayRow> {
  requireRunnable(row, 'broadcast', dryRun);
  const conditions = properties ?? [];
  // Nothing but the conditions: a function that does nothing is compiled with them.
  const content = {
    ...{ hog: 'return null', inputs_schema: [], inputs: {}, masking: null, mappings: null },
    filters: { properties: conditions },
  };
  const subject = { projectId: row.project_id, current: undefined, secrets: SECRETLESS };
  const { compiled } = await compileContent(deps, subject, 'destination', content, true, signal);
  return startReplay(deps, actor, row, {
    ...{ id: uuidv7(), kind: 'broadcast', dry_run: dryRun },
    ...{ properties: conditions, bytecode: (compiled.filters.bytecode ?? null) as Bytecode | null },
    rate_per_second: ratePerSecond,
  });
}
