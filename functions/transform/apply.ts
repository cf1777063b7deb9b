// Runs the transformations of a project on events. It is called where events come in, and in threads.

import { decompileExpression } from '../../hog/bytecode/decompile.ts';
import { type HostOptions, hostFunctions } from '../../hog/host/index.ts';
import { compiledFrom, type Executed, type JavaScriptOptions } from '../../hog/javascript/index.ts';
import { Held, toHost } from '../../hog/runtime/values.ts';
import { HogFailure } from '../../hog/vm/index.ts';
import { cut } from '../../values/texts.ts';
import { PROGRAM_LIMITS } from '../evaluate.ts';
import { placed } from '../failure-place.ts';
import { type Filter, filterOf, isHeavy, isJavaScript, Moment } from '../filter.ts';
import type { StoredInputs } from '../rules/definition.ts';
import { filterGlobalsOf, type Globals, transformationGlobals } from '../rules/globals.ts';
import { MOST_PRINTED, printedText, shortened } from '../rules/logs.ts';
import { type Redact, redactor } from '../rules/redact.ts';
import { seedOf } from '../rules/stored-event.ts';
import { costOf } from '../rules/watcher.ts';
import { changedNames, shallowlyChanged } from './changed-names.ts';
import type { Chain, Change, Transformable, Transformation } from './definition.ts';
import { areLimited, inputsOf } from './inputs.ts';
import { nativeOf } from './native.ts';
import type { Notes, Tally } from './tally.ts';

/** What may be used for one program. */
export interface Room {
  milliseconds: number;
  memory: number;
}
/** Of a program in a thread. */
export const WHOLE_ROOM: Room = {
  milliseconds: PROGRAM_LIMITS.maxMilliseconds as number,
  memory: PROGRAM_LIMITS.maxMemory as number,
};

/**
 * What became of an event. `heavy`: a program needs more room than it was given here, and nothing was decided. `refused`: the
 * event must not be stored as it is, so that its request has to be sent again.
 */
export type Applied =
  | {
      verdict: 'kept';
      event: string;
      distinct_id: string;
      properties: Record<string, unknown>;
      changes: Change[];
      /** What programs returned for the event, in bytes by estimate. */
      size: number;
    }
  | { verdict: 'dropped'; by: string; isFault: boolean }
  | { verdict: 'refused'; by: string }
  | { verdict: 'heavy' };

interface Prepared extends Pick<Transformation, 'id' | 'name' | 'version' | 'onError' | 'problem'> {
  /** Null: it takes all events. */
  filter: Filter | null;
  inputs(globals: Globals): Record<string, unknown>;
  run(globals: Globals): Executed;
  native: ReturnType<typeof nativeOf>;
  redact(): Redact;
}

export interface Host {
  /** Milliseconds. Limits of time count it. */
  clock(): number;
  place: HostOptions['place'];
  room: Room;
}

/** Where an event is on its way through the transformations. */
interface State extends Pick<Transformable, 'event' | 'distinct_id' | 'properties'> {
  /** The properties, as programs see them. */
  held: Held;
}

/** A program has run on an event. Null: it changed nothing. */
interface Ran {
  state: State;
  change: Change | null;
  size: number;
}

/** Characters of a line: more than a log shows, because secrets are still to be hidden. */
const LONGEST_KEPT = 200_000;
/** The chain of elements is still among the properties. */
const NO_CHAIN = '';

/** The transformations of a project, compiled. */
export class Transformations {
  readonly chain: Chain;
  /** Whether a program looks up the location of addresses. */
  readonly needsPlaces: boolean;
  /** Whether a filter or an input takes time that nothing here limits. */
  readonly needsThread: boolean;
  readonly #list: readonly Prepared[];
  readonly #clock: () => number;
  readonly #isWhole: boolean;
  readonly #moment = new Moment();
  #printed: string[] = [];

  constructor(chain: Chain, host: Host) {
    this.chain = chain;
    this.#clock = host.clock;
    this.#isWhole = host.room === WHOLE_ROOM;
    this.#list = chain.transformations.map((one) => this.#prepare(one, host));
    this.needsThread = !chain.transformations.every(
      ({ filters, inputs }) => isJavaScript(filters) && areLimited(inputs),
    );
    this.needsPlaces = chain.transformations.some(({ program }) => program.functions.includes('geoipLookup'));
  }

  #prepare(one: Transformation, { place, clock, room }: Host): Prepared {
    const { id, name, version, onError, problem, filters, program, inputs, given, secret, native } = one;
    const filter = filters && decompileExpression(filters);
    const takesAll = filter?.kind === 'constant' && filter.value === true;
    const all: NonNullable<JavaScriptOptions['functions']> = {
      ...hostFunctions(place ? { place } : {}),
      print: (...args) => {
        if (this.#printed.length <= MOST_PRINTED)
          this.#printed.push(printedText(args).slice(0, LONGEST_KEPT));
        return null;
      },
      postHogCapture: () => {
        throw new Error('posthogCapture is not supported in transformations');
      },
    };
    const limits = { maxMilliseconds: room.milliseconds, maxMemory: room.memory };
    let redact: Redact | undefined;
    return {
      ...{ id, name, version, onError, problem },
      filter: takesAll ? null : filterOf(filters, this.#moment, { clock, limits }),
      inputs: inputsOf(inputs, given, this.#moment, { clock, limits }),
      native: native === null ? undefined : nativeOf(native, place),
      run: compiledFrom(program).executor({
        functions: Object.fromEntries(Object.entries(all).filter(([key]) => program.functions.includes(key))),
        ...{ clock, now: () => this.#moment.now, random: () => this.#moment.random() },
        limits: { ...PROGRAM_LIMITS, ...limits },
      }),
      redact: () => {
        redact ??= redactorFor(inputs, secret);
        return redact;
      },
    };
  }

  /** Runs the transformations one after the other. Those in `suspended` do not run, which counts as a failure. */
  apply(event: Transformable, suspended: ReadonlyMap<string, string>, tally: Tally): Applied {
    this.#moment.set(event.received_at, () => seedOf(event.uuid));
    const notes = tally.event(event.uuid);
    let state = stateOf(event);
    const time = new Date(event.timestamp).toISOString();
    let size = 0;
    const changes: Change[] = [];
    for (const one of this.#list) {
      const ran = this.#one(one, { uuid: event.uuid, time }, state, suspended, notes);
      if (ran === 'heavy') return { verdict: 'heavy' };
      if (ran === 'skipped') continue;
      if (ran === 'dropped') {
        notes.commit();
        return { verdict: 'dropped', by: one.id, isFault: false };
      }
      if (ran === 'failed') {
        if (one.onError === 'pass') {
          // The program may have begun to change what it shares with the next one.
          state = stateOf(state);
          continue;
        }
        const applied = consequence(one, notes);
        notes.commit();
        return applied;
      }
      size += ran.size;
      if (ran.change) changes.push(ran.change);
      state = ran.state;
    }
    notes.commit();
    const { event: name, distinct_id, properties } = state;
    return { verdict: 'kept', event: name, distinct_id, properties, changes, size };
  }

  /** Decides about an event that no program may look at, because of `message`. */
  giveUp(event: Transformable, message: string, tally: Tally): Applied {
    const notes = tally.event(event.uuid);
    const { event: name, distinct_id, properties } = event;
    let applied: Applied = {
      ...{ verdict: 'kept', event: name, distinct_id, properties, changes: [], size: 0 },
    };
    for (const { id, onError } of this.#list) {
      notes.fail(id, 'failed', message);
      if (onError === 'pass') continue;
      applied = consequence({ id, onError }, notes);
      break;
    }
    notes.commit();
    return applied;
  }

  #one(
    one: Prepared,
    { uuid, time }: { uuid: string; time: string },
    state: State,
    suspended: ReadonlyMap<string, string>,
    notes: Notes,
  ): 'heavy' | 'skipped' | 'dropped' | 'failed' | Ran {
    const { id, problem } = one;
    const fail = (name: string, message: string) => {
      notes.fail(id, name, shortened(one.redact().text(message)));
      return 'failed' as const;
    };
    const reason = suspended.get(id);
    if (reason !== undefined) {
      notes.count(id, 'failure', reason);
      return 'failed';
    }
    if (problem !== null) return fail('failed', problem);
    const { event, distinct_id, properties } = state;
    const facts = { uuid, event, distinct_id, properties, timestamp: time, elements_chain: NO_CHAIN };
    if (one.filter) {
      const { matched, error, isHeavy: tookMuch } = one.filter(filterGlobalsOf(facts, null, []));
      if (tookMuch && !this.#isWhole) return 'heavy';
      if (error !== undefined) {
        return fail('filtering_failed', `Error filtering event ${uuid}: ${error}`);
      }
      if (!matched) {
        notes.count(id, 'other', 'filtered');
        return 'skipped';
      }
    }
    const { projectId, url } = this.chain;
    const globals = transformationGlobals({ id: projectId, url }, facts);
    const began = this.#clock();
    try {
      globals.inputs = one.inputs(globals);
    } catch (error) {
      if (error instanceof HogFailure && isHeavy(error) && !this.#isWhole) return 'heavy';
      return fail('inputs_failed', `Error building inputs for event ${uuid}: ${(error as Error).message}`);
    }
    const known = one.native?.(globals.inputs as Record<string, unknown>)?.(properties);
    if (known) {
      notes.count(id, 'success', 'succeeded');
      return ranNatively(one, state, known);
    }
    (globals.event as Record<string, unknown>).properties = state.held;
    this.#printed = [];
    const outcome = one.run(globals);
    if (outcome.status === 'failed' && isHeavy(outcome.error) && !this.#isWhole) return 'heavy';
    const cost = costOf(this.#clock() - began, []);
    if (cost > 0) notes.cost(id, cost);
    for (const line of this.#printed) notes.print(id, shortened(one.redact().text(line)));
    if (outcome.status === 'failed') {
      const message = placed(outcome.place, outcome.error.message);
      return fail('failed', `Error executing function on event ${uuid}: ${message}`);
    }
    if (!outcome.result) {
      notes.count(id, 'success', 'succeeded');
      notes.count(id, 'other', 'dropped');
      return 'dropped';
    }
    try {
      const { ran, fault } = ranOf(one, outcome, state);
      if (fault === undefined) notes.count(id, 'success', 'succeeded');
      else fail('failed', `Error executing function on event ${uuid}: ${fault}`);
      // What is good of a result counts, unless failures have consequences.
      return ran && (fault === undefined || one.onError === 'pass') ? ran : 'failed';
    } catch (error) {
      // The result is too large, or too deep.
      return fail('failed', `Error executing function on event ${uuid}: ${(error as Error).message}`);
    }
  }
}

const stateOf = ({ event, distinct_id, properties }: Omit<State, 'held'>): State => ({
  ...{ event, distinct_id, properties, held: new Held(properties) },
});

function redactorFor(inputs: StoredInputs, secret: readonly string[]): Redact {
  const values = Object.fromEntries(Object.entries(inputs).map(([key, { value }]) => [key, value]));
  return redactor(
    secret.map((key) => values[key]),
    values,
  );
}

/** What follows for an event from the failure of a transformation that does not let it pass. */
function consequence({ id, onError }: Pick<Prepared, 'id' | 'onError'>, notes: Notes): Applied {
  const drops = onError === 'drop';
  notes.count(id, 'other', drops ? 'dropped_on_error' : 'refused_on_error');
  return drops ? { verdict: 'dropped', by: id, isFault: true } : { verdict: 'refused', by: id };
}

/** What became of an event whose program was known by heart. What is not the same object has changed. */
function ranNatively({ id, version }: Prepared, before: State, properties: State['properties']): Ran {
  if (properties === before.properties) return { state: before, change: null, size: 0 };
  const names = shallowlyChanged(before.properties, properties);
  const state = { ...before, properties, held: new Held(properties) };
  return { state, change: { id, version, properties: names }, size: 0 };
}

/** Reads what a program returns. With a fault, `ran` is what of it can be used. */
function ranOf(
  { id, version }: Prepared,
  { result, writes, size }: Extract<Executed, { status: 'finished' }>,
  before: State,
): { ran?: Ran; fault?: string } {
  if (!(result instanceof Map)) return { fault: 'the result is no event' };
  const given = result.get('properties');
  if (!(given instanceof Map)) return { fault: 'the `properties` of the result are no object' };
  const [event, distinctId] = [result.get('event'), result.get('distinct_id')];
  const fault = ['event', 'distinct_id'].find((_name, index) => !isText([event, distinctId][index]));
  const state = fault === undefined ? { event: cut(event), distinct_id: cut(distinctId) } : before;
  const fields = (['event', 'distinct_id'] as const).filter((name) => before[name] !== state[name]);
  const isShared = before.held.isFirst(given);
  // A result that is huge as JSON may be small in memory, so it is measured before it is read.
  const bytes = writes === 0 && isShared ? 0 : size();
  const names = bytes === 0 ? [] : changedNames(before.properties, given);
  const properties = names.length === 0 ? before.properties : (toHost(given) as State['properties']);
  // What a program returned belongs to nobody else.
  const held = new Held(properties, names.length === 0 && !isShared ? undefined : given);
  const isChanged = names.length + fields.length > 0;
  const change = isChanged
    ? { id, version, properties: names, ...(fields.length > 0 ? { fields } : {}) }
    : null;
  const ran = {
    state: { event: state.event, distinct_id: state.distinct_id, properties, held },
    change,
    size: bytes,
  };
  return fault === undefined ? { ran } : { ran, fault: `\`${fault}\` of the result is no text` };
}

const isText = (value: unknown): value is string => typeof value === 'string' && value.trim() !== '';
