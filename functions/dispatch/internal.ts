import { createHash } from 'node:crypto';
import { type Pool, type Transaction, transaction } from '../../db/pool.ts';
import { uuidv7 } from '../../db/uuid.ts';
import type { Bytecode } from '../../hog/bytecode/index.ts';
import { cleanText } from '../../values/texts.ts';
import type { Match } from '../evaluate.ts';
import { addCounts, Counts } from '../rows/counts.ts';
import {
  type InternalDestination,
  type InternalEventRow,
  internalDestinations,
  returnInternalEvents,
  takeInternalEvents,
} from '../rows/internal-events.ts';
import { addLogs, type NewLogRow } from '../rows/logs.ts';
import { countMasked } from '../rows/masks.ts';
import { enqueueUnstored, type UnstoredInvocation } from '../rows/unstored.ts';
import { filterGlobals, type Globals, programGlobals } from '../rules/globals.ts';
import { LONGEST_WINDOW, letThrough } from '../rules/masking.ts';
import { frameOf } from '../rules/stored-event.ts';
import { isNoStep, type Runner } from '../runner.ts';

export interface InternalDispatchDependencies {
  pool: Pool;
  runner: Pick<Runner, 'match' | 'mask'>;
  /** The address under which users see Sluice. */
  site: string;
  /** Invocations of these functions are due. */
  queued(functions: readonly { projectId: number; functionId: string }[]): void;
}

const AT_ONCE = 100;
/** How long the filters of one project may take in a turn, in milliseconds. */
const LONGEST = 2_000;

/** Gives events of Sluice itself to the functions that want them. */
export class InternalDispatcher {
  readonly #deps: InternalDispatchDependencies;

  constructor(deps: InternalDispatchDependencies) {
    this.#deps = deps;
  }

  /** Takes the next events. Returns how many there were. */
  async turn(): Promise<number> {
    const { pool, queued } = this.#deps;
    const { taken, invocations } = await transaction(pool, async (client) => {
      const events = await takeInternalEvents(client, AT_ONCE);
      const turn = new Turn(this.#deps, client);
      for (const projectId of new Set(events.map((one) => one.project_id))) {
        await turn.project(
          projectId,
          events.filter((one) => one.project_id === projectId),
        );
      }
      await turn.write();
      return { taken: events.length, invocations: turn.invocations };
    });
    if (invocations.length > 0) queued(invocations);
    return taken;
  }
}

class Turn {
  readonly invocations: UnstoredInvocation[] = [];
  readonly #deps: InternalDispatchDependencies;
  readonly #client: Transaction;
  readonly #counts = new Counts();
  readonly #logs: NewLogRow[] = [];

  constructor(deps: InternalDispatchDependencies, client: Transaction) {
    this.#deps = deps;
    this.#client = client;
  }

  async project(projectId: number, events: readonly InternalEventRow[]): Promise<void> {
    const found = await internalDestinations(this.#client, projectId);
    if (!found) return;
    const began = performance.now();
    for (const [index, event] of events.entries()) {
      if (performance.now() - began > LONGEST) {
        // The filters of this project take long. Others come first.
        await returnInternalEvents(this.#client, events.slice(index));
        return;
      }
      // A function that hears of its own troubles would only have more of them.
      const wanting = found.functions.filter(
        (one) => one.id !== event.about && Date.parse(one.enabled_at) <= Date.parse(event.created_at),
      );
      if (wanting.length > 0) await this.#event(found.project, event, wanting);
    }
  }

  async write(): Promise<void> {
    await enqueueUnstored(this.#client, this.invocations);
    await addLogs(this.#client, this.#logs);
    await addCounts(this.#client, this.#counts.all);
  }

  async #event(
    project: { id: number; name: string },
    row: InternalEventRow,
    functions: readonly InternalDestination[],
  ): Promise<void> {
    const { uuid, event, distinct_id, properties, created_at } = row;
    const facts = {
      ...{ project, site: this.#deps.site, person: null, groups: [] },
      event: { uuid, event, distinct_id, properties, timestamp: created_at, elements_chain: '' },
    };
    const frame = frameOf({ uuid, created_at });
    const globalsFor = ({ id, name }: InternalDestination): Globals =>
      programGlobals({ ...facts, source: { id, name } });
    const first = functions[0] as InternalDestination;
    const filters = functions.map((one) => (one.filters?.bytecode ?? null) as Bytecode | null);
    const verdicts: readonly Match[] = await this.#deps.runner
      .match(project.id, { filters, globals: filterGlobals(globalsFor(first)), frame })
      .catch((reason: unknown) => {
        if (!isNoStep(reason)) throw reason;
        return filters.map(() => ({ matched: false, error: reason.message }));
      });
    for (const [index, one] of functions.entries()) {
      const { matched = false, error } = verdicts[index] ?? {};
      const count = (name: string) => this.#counts.add(project.id, one.id, 'other', name);
      if (!matched) {
        count(error === undefined ? 'filtered' : 'filtering_failed');
        if (error !== undefined) this.#log(row, one, `Error filtering event ${uuid}: ${error}`);
        continue;
      }
      const globals = globalsFor(one);
      if (await this.#isMasked(row, one, globals)) {
        count('masked');
        continue;
      }
      count('triggered');
      this.invocations.push({
        ...{ id: uuidv7(), projectId: project.id, functionId: one.id, version: one.version },
        ...{ distinctId: distinct_id, globals, clock: frame.now, seed: frame.seed >>> 1 },
      });
    }
  }

  async #isMasked(row: InternalEventRow, one: InternalDestination, globals: Globals): Promise<boolean> {
    const { masking } = one;
    if (!masking?.bytecode) return false;
    const frame = frameOf(row);
    const { key, error } = await this.#deps.runner
      .mask(row.project_id, { bytecode: masking.bytecode as Bytecode, globals, frame })
      .catch((reason: unknown) => {
        if (!isNoStep(reason)) throw reason;
        return { key: null, error: reason.message };
      });
    if (error !== undefined) this.#log(row, one, `Error masking event ${row.uuid}: ${error}`);
    if (!key) return false;
    const [before] = await countMasked(this.#client, [
      {
        ...{ project_id: row.project_id, function_id: one.id, invocations: 1 },
        ttl: Math.min(masking.ttl ?? LONGEST_WINDOW, LONGEST_WINDOW),
        key: createHash('md5').update(key).digest('hex'),
      },
    ]);
    return !letThrough(before as number, masking.threshold);
  }

  #log(
    { project_id: projectId, uuid }: InternalEventRow,
    { id: functionId }: InternalDestination,
    message: string,
  ) {
    this.#logs.push({
      ...{ projectId, functionId, instanceId: uuid, level: 'error', message: cleanText(message) },
      timestamp: new Date().toISOString(),
    });
  }
}
