// Runs the transformations of a project on events. It is called where events come in, and in threads.

import { cut, storableTime } from '../../capture/captured-event.ts';
import { decompileExpression } from '../../hog/bytecode/decompile.ts';
import { type HostOptions, hostFunctions } from '../../hog/host/index.ts';
import { type Compiled, compiledFrom } from '../../hog/javascript/index.ts';
import { PROGRAM_LIMITS } from '../evaluate.ts';
import { type Filter, filterOf, Moment } from '../filter.ts';
import { filterGlobalsOf, type Globals, transformationGlobals } from '../rules/globals.ts';
import { MOST_PRINTED, printedText } from '../rules/logs.ts';
import { type Redact, redactor } from '../rules/redact.ts';
import { seedOf } from '../rules/stored-event.ts';
import { costOf } from '../rules/watcher.ts';
import { changedNames } from './changed-names.ts';
import type { Chain, Change, Transformable, Transformation } from './definition.ts';
import { inputsOf } from './inputs.ts';
import type { Tally } from './tally.ts';

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
  compiled: Compiled;
  functions: Record<string, (...args: unknown[]) => unknown>;
  redact(): Redact;
}

export interface Host {
  /** Milliseconds. Limits of time count it. */
  clock(): number;
  place: HostOptions['place'];
}

/** Where an event is on its way through the transformations. */
type State = Pick<Transformable, 'event' | 'distinct_id' | 'properties'>;

const HEAVY: ReadonlySet<string> = new Set(['time', 'memory', 'steps']);
/** The chain of elements is still among the properties. */
const NO_CHAIN = '';

/** The transformations of a project, compiled. */
export class Transformations {
  readonly chain: Chain;
  /** Whether a program looks up the location of addresses. */
  readonly needsPlaces: boolean;
  readonly #list: readonly Prepared[];
  readonly #clock: () => number;
  readonly #moment = new Moment();
  #printed: string[] = [];

  constructor(chain: Chain, host: Host) {
    this.chain = chain;
    this.#clock = host.clock;
    this.#list = chain.transformations.map((one) => this.#prepare(one, host));
    this.needsPlaces = chain.transformations.some(({ program }) => program.functions.includes('geoipLookup'));
  }

  #prepare(one: Transformation, { place, clock }: Host): Prepared {
    const { id, name, version, onError, problem, filters, program, inputs, given, secret } = one;
    const filter = filters && decompileExpression(filters);
    const takesAll = filter?.kind === 'constant' && filter.value === true;
    const all: Prepared['functions'] = {
      ...hostFunctions(place ? { place } : {}),
      print: (...args) => {
        if (this.#printed.length <= MOST_PRINTED) this.#printed.push(printedText(args));
        return null;
      },
      postHogCapture: () => {
        throw new Error('posthogCapture is not supported in transformations');
      },
    };
    let redact: Redact | undefined;
    return {
      ...{ id, name, version, onError, problem },
      filter: takesAll ? null : filterOf(filters, this.#moment),
      inputs: inputsOf(inputs, given, this.#moment, clock),
      compiled: compiledFrom(program),
      functions: Object.fromEntries(Object.entries(all).filter(([key]) => program.functions.includes(key))),
      redact: () => {
        const values = Object.fromEntries(Object.entries(inputs).map(([key, { value }]) => [key, value]));
        redact ??= redactor(
          secret.map((key) => values[key]),
          values,
        );
        return redact;
      },
    };
  }

  /** Runs the transformations one after the other. Those in `suspended` do not run, which counts as a failure. */
  apply(event: Transformable, room: Room, suspended: ReadonlyMap<string, string>, tally: Tally): Applied {
    this.#moment.set(event.received_at, () => seedOf(event.uuid));
    const notes = tally.event(event.uuid);
    let state: State = event;
    let size = 0;
    const changes: Change[] = [];
    for (const one of this.#list) {
      const ran = this.#one(one, event, state, room, suspended, notes);
      if (ran === 'heavy') return { verdict: 'heavy' };
      if (ran === 'skipped') continue;
      if (ran === 'dropped') {
        notes.commit();
        return { verdict: 'dropped', by: one.id, isFault: false };
      }
      if (ran === 'failed') {
        if (one.onError === 'pass') continue;
        notes.count(one.id, 'other', one.onError === 'drop' ? 'dropped_on_error' : 'refused_on_error');
        notes.commit();
        return one.onError === 'drop'
          ? { verdict: 'dropped', by: one.id, isFault: true }
          : { verdict: 'refused', by: one.id };
      }
      size += ran.size;
      const change = changeOf(one, state, ran.state);
      if (!change) continue;
      changes.push(change);
      state = ran.state;
    }
    notes.commit();
    const { event: name, distinct_id, properties } = state;
    return { verdict: 'kept', event: name, distinct_id, properties, changes, size };
  }

  /** Decides about an event that no program may look at, because of `message`. */
  giveUp(event: Transformable, message: string, tally: Tally): Applied {
    const notes = tally.event(event.uuid);
    let applied: Applied = { verdict: 'kept', ...stateOf(event), changes: [], size: 0 };
    for (const { id, onError } of this.#list) {
      notes.fail(id, 'failed', message);
      if (onError === 'pass') continue;
      notes.count(id, 'other', onError === 'drop' ? 'dropped_on_error' : 'refused_on_error');
      applied =
        onError === 'drop' ? { verdict: 'dropped', by: id, isFault: true } : { verdict: 'refused', by: id };
      break;
    }
    notes.commit();
    return applied;
  }

  #one(
    one: Prepared,
    event: Transformable,
    state: State,
    room: Room,
    suspended: ReadonlyMap<string, string>,
    notes: ReturnType<Tally['event']>,
  ): 'heavy' | 'skipped' | 'dropped' | 'failed' | { state: State; size: number } {
    const { id, problem } = one;
    const fail = (name: string, message: string) => {
      notes.fail(id, name, one.redact().text(message));
      return 'failed' as const;
    };
    const reason = suspended.get(id);
    if (reason !== undefined) {
      notes.count(id, 'failure', reason);
      return 'failed';
    }
    if (problem !== null) return fail('failed', problem);
    const facts = {
      ...{
        uuid: event.uuid,
        event: state.event,
        distinct_id: state.distinct_id,
        properties: state.properties,
      },
      ...{ timestamp: new Date(storableTime(event)).toISOString(), elements_chain: NO_CHAIN },
    };
    if (one.filter) {
      const { matched, error } = one.filter(filterGlobalsOf(facts, null, []));
      if (error !== undefined) {
        return fail('filtering_failed', `Error filtering event ${event.uuid}: ${error}`);
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
      return fail(
        'inputs_failed',
        `Error building inputs for event ${event.uuid}: ${(error as Error).message}`,
      );
    }
    this.#printed = [];
    const outcome = one.compiled.run(globals, {
      functions: one.functions,
      clock: this.#clock,
      now: () => this.#moment.now,
      random: () => this.#moment.random(),
      limits: { ...PROGRAM_LIMITS, maxMilliseconds: room.milliseconds, maxMemory: room.memory },
    });
    const isHeavy = outcome.status === 'failed' && HEAVY.has(outcome.error.code);
    if (isHeavy && room !== WHOLE_ROOM) return 'heavy';
    const cost = costOf(this.#clock() - began, []);
    if (cost > 0) notes.cost(id, cost);
    for (const line of this.#printed) notes.print(id, one.redact().text(line));
    if (outcome.status === 'failed') {
      return fail('failed', `Error executing function on event ${event.uuid}: ${outcome.error.message}`);
    }
    const { result } = outcome;
    if (!result) {
      notes.count(id, 'success', 'succeeded');
      notes.count(id, 'other', 'dropped');
      return 'dropped';
    }
    const read = stateIn(result, state);
    if (read.fault !== undefined) {
      const failed = fail('failed', `Error executing function on event ${event.uuid}: ${read.fault}`);
      // What is good of the result counts, unless failures have consequences.
      return read.state && one.onError === 'pass' ? { state: read.state, size: outcome.size } : failed;
    }
    notes.count(id, 'success', 'succeeded');
    return { state: read.state, size: outcome.size };
  }
}

const stateOf = ({ event, distinct_id, properties }: State): State => ({ event, distinct_id, properties });

const isText = (value: unknown): value is string => typeof value === 'string' && value.trim() !== '';
const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** Reads what a program returns. With a fault, `state` is what of it can be used. */
function stateIn(
  result: unknown,
  before: State,
): { state: State; fault?: undefined } | { state?: State; fault: string } {
  if (!isObject(result)) return { fault: 'the result is no event' };
  const { event, distinct_id: id, properties } = result;
  if (!isObject(properties)) return { fault: 'the `properties` of the result are no object' };
  if (!isText(event)) return { fault: '`event` of the result is no text', state: { ...before, properties } };
  if (!isText(id))
    return { fault: '`distinct_id` of the result is no text', state: { ...before, properties } };
  return { state: { event: cut(event), distinct_id: cut(id), properties } };
}

function changeOf({ id, version }: Prepared, before: State, after: State): Change | undefined {
  const properties = changedNames(before.properties, after.properties);
  const fields = (['event', 'distinct_id'] as const).filter((name) => before[name] !== after[name]);
  if (properties.length === 0 && fields.length === 0) return undefined;
  return { id, version, properties, ...(fields.length > 0 ? { fields } : {}) };
}
