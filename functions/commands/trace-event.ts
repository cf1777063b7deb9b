import { refuse } from '../../refusals.ts';
import { namesTestAccounts } from '../compile.ts';
import { NO_SECRETS } from '../reads/secrets.ts';
import {
  functionNames,
  functionsToTrace,
  invocationsOfEvent,
  type TracedEvent,
  type TracedFunction,
  type TracedInvocation,
} from '../rows/trace.ts';
import { FunctionError } from '../rules/definition.ts';
import type { StoredEvent } from '../rules/stored-event.ts';
import { type FunctionFilters, filtersOf } from '../rules/variants.ts';
import { wantedNames } from '../rules/wanted-names.ts';
import { type Runner, RunnerBusyError, RunnerLimitError } from '../runner.ts';
import { lookUpListed } from '../static-cohorts.ts';
import { surroundingsOf } from '../surroundings.ts';
import type { FunctionCommandDependencies } from './dependencies.ts';
import type { Read } from './sample-event.ts';

/** A transformation that changed the event. */
export interface TracedChange {
  function_id: string;
  name: string | null;
  version: number;
  /** The names of the properties that it added, changed or removed. */
  properties: string[];
  fields: string[];
}

/** One condition of a function, and whether the event meets it. */
export interface TracedCondition {
  condition: Record<string, unknown>;
  /** Null: it could not be evaluated. */
  matches: boolean | null;
  error: string | null;
}

export interface TracedReaction {
  function_id: string;
  name: string | null;
  version: number;
  /** Whether the version that is stored now wants the event. Null: its filters cannot be evaluated. */
  matches: boolean | null;
  /** Why it did not run. Null: it did, or it will. */
  reason:
    | 'disabled'
    | 'enabled_later'
    | 'historical'
    | 'event_name'
    | 'conditions'
    | 'error'
    | 'pending'
    | null;
  error: string | null;
  /** Null: nobody asked for them. */
  conditions: TracedCondition[] | null;
  invocations: Omit<TracedInvocation, 'function_id'>[];
}

export interface FunctionTrace {
  transformations: TracedChange[];
  functions: TracedReaction[];
  /** Whether there are more functions than those that are listed. */
  has_more_functions: boolean;
}

export interface TraceDependencies
  extends Pick<FunctionCommandDependencies, 'pool' | 'compiler' | 'actions' | 'cohorts'> {
  runner: Runner;
  read: Read;
  /** The address under which users see Sluice. */
  site: string;
}

const MOST_FUNCTIONS = 200;
const MOST_INVOCATIONS = 200;
const MOST_CONDITIONS = 50;
const RETRY_SECONDS = 5;

/** Finds out what functions did with a stored event. `explain` names a function whose conditions are evaluated one by one. */
export async function traceFunctions(
  deps: TraceDependencies,
  project: { id: number; name: string },
  event: TracedEvent,
  explain: string | undefined,
  signal?: AbortSignal,
): Promise<FunctionTrace> {
  const changes = event.transformations ?? [];
  const found = await deps.read(async (client) => ({
    names: await functionNames(
      client,
      project.id,
      changes.map((one) => one.id),
    ),
    functions: await functionsToTrace(client, project.id, event, MOST_FUNCTIONS + 1),
    invocations: await invocationsOfEvent(client, project.id, event.uuid, MOST_INVOCATIONS),
  }));
  const functions = found.functions.slice(0, MOST_FUNCTIONS);
  if (explain !== undefined && !functions.some((one) => one.id === explain)) {
    throw refuse.invalid('explain', `No enabled destination has the id ${explain}.`);
  }
  const tracing = new Tracing(deps, project, event, signal);
  try {
    const verdicts = await tracing.verdicts(functions.map(filtersOf));
    const reactions: TracedReaction[] = [];
    for (const [index, one] of functions.entries()) {
      const own = found.invocations.filter((each) => each.function_id === one.id);
      const conditions = one.id === explain ? await tracing.conditions(one) : null;
      reactions.push(reactionOf(one, event, verdicts[index] as Verdict, own, conditions));
    }
    return {
      transformations: changes.map(({ id, version, properties, fields = [] }) => ({
        ...{ function_id: id, name: found.names.get(id) ?? null, version, properties, fields },
      })),
      functions: reactions,
      has_more_functions: found.functions.length > MOST_FUNCTIONS,
    };
  } catch (error) {
    if (error instanceof RunnerBusyError) throw refuse.unavailable(error.message, RETRY_SECONDS);
    if (error instanceof RunnerLimitError) throw refuse.invalid(null, error.message);
    throw error;
  }
}

interface Verdict {
  matches: boolean | null;
  error: string | null;
}

/** Asks filters about one event. */
class Tracing {
  readonly #deps: TraceDependencies;
  readonly #project: { id: number; name: string };
  readonly #event: StoredEvent;
  readonly #signal: AbortSignal | undefined;

  constructor(
    deps: TraceDependencies,
    project: { id: number; name: string },
    event: StoredEvent,
    signal: AbortSignal | undefined,
  ) {
    this.#deps = deps;
    this.#project = project;
    this.#event = event;
    this.#signal = signal;
  }

  async verdicts(filters: readonly FunctionFilters[]): Promise<Verdict[]> {
    if (filters.length === 0) return [];
    const listed = await lookUpListed(this.#deps.read, this.#project.id, filters, [this.#event.person_id]);
    const event = { ...this.#event, listed_in: listed(this.#event.person_id) };
    const [answers] = await this.#deps.runner.scan(
      this.#project.id,
      {
        ...{ type: 'destination', events: [event] },
        facts: { project: this.#project, site: this.#deps.site, source: { id: '', name: null } },
        triggers: filters.map((one) => ({ filters: one, masking: null })),
      },
      this.#signal,
    );
    return (answers ?? []).map(({ invocations, error }) => ({
      matches: error !== undefined && invocations === 0 ? null : invocations > 0,
      error: error ?? null,
    }));
  }

  /** Evaluates the conditions of a function one by one: those of the function, and of each mapping. */
  async conditions(one: TracedFunction): Promise<TracedCondition[]> {
    const conditions = [one.filters, ...(one.mappings ?? []).map((each) => each.filters ?? {})]
      .flatMap(conditionsIn)
      .slice(0, MOST_CONDITIONS);
    const traced: TracedCondition[] = [];
    for (const condition of conditions) {
      const compiled = await this.#compiled(condition);
      const [verdict] =
        'error' in compiled ? [{ matches: null, error: compiled.error }] : await this.verdicts([compiled]);
      const { bytecode: _bytecode, ...shown } = condition;
      traced.push({ condition: shown, ...(verdict as Verdict) });
    }
    return traced;
  }

  async #compiled(filters: Record<string, unknown>): Promise<FunctionFilters | { error: string }> {
    const { compiler } = this.#deps;
    const content = { filters, mappings: null };
    const { surroundings } = await surroundingsOf(this.#deps, this.#project.id, content);
    try {
      const compiled = await compiler.compile(
        this.#project.id,
        {
          ...{ type: 'destination', secrets: NO_SECRETS, isEnabled: true, ...surroundings },
          content: { ...content, hog: 'return event', inputs_schema: [], inputs: {}, masking: null },
        },
        this.#signal,
      );
      return filtersOf(compiled);
    } catch (error) {
      if (!(error instanceof FunctionError)) throw error;
      return { error: error.message };
    }
  }
}

/** Takes filters apart: each event or action with its own conditions, each condition for all, and the test accounts. */
function conditionsIn(filters: Record<string, unknown>): Record<string, unknown>[] {
  const list = (value: unknown) => (Array.isArray(value) ? value : []);
  const [events, actions] = [list(filters.events), list(filters.actions)];
  return [
    // One of them is enough.
    ...(events.length + actions.length > 0 ? [{ events, actions }] : []),
    ...list(filters.properties).map((one) => ({ properties: [one] })),
    ...(namesTestAccounts({ filters, mappings: null }) ? [{ filter_test_accounts: true }] : []),
  ];
}

function reactionOf(
  one: TracedFunction,
  event: TracedEvent,
  { matches, error }: Verdict,
  invocations: readonly TracedInvocation[],
  conditions: TracedCondition[] | null,
): TracedReaction {
  const ran = invocations.length > 0;
  return {
    ...{ function_id: one.id, name: one.name, version: one.version, matches, error, conditions },
    reason: ran ? null : reasonOf(one, event, matches),
    invocations: invocations.map(({ function_id: _function, ...rest }) => rest),
  };
}

function reasonOf(
  { saw_event: saw, filters, mappings }: TracedFunction,
  event: TracedEvent,
  matches: boolean | null,
): TracedReaction['reason'] {
  if (saw === null) return 'disabled';
  if (!saw) return 'enabled_later';
  if (event.historical) return 'historical';
  const names = mappings ? wantedNames(mappings.map((one) => one.filters ?? {})) : wantedNames([filters]);
  if (names && !names.includes(event.event)) return 'event_name';
  if (matches === null) return 'error';
  return matches ? 'pending' : 'conditions';
}
