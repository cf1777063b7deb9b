// Finds out which functions run for stored events. It is called in threads.
import { createHash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import type { Bytecode } from '../../hog/bytecode/index.ts';
import { COHORT_IDS } from '../../properties/index.ts';
import { maskKey, processorTime, surroundingsIn } from '../evaluate.ts';
import { type Filter, filterOf, Moment } from '../filter.ts';
import type { NewInvocation } from '../rows/queue.ts';
import { filterGlobalsOf, type GroupFacts, type PersonFacts, programGlobals } from '../rules/globals.ts';
import { frameOf } from '../rules/stored-event.ts';
import { type EventRow, ID_BYTES, rowsIn } from './event-rows.ts';
import { exclusionOfFunction } from './sieve.ts';
import { TextExclusions } from './texts.ts';

/** What of a function decides for which events it runs. */
export interface Trigger {
  id: string;
  name: string | null;
  version: number;
  /** Microseconds since 2000. Events that were stored before are not for it. */
  enabledAt: number;
  /** The names of the events that it wants. Null: it may want any. */
  names: readonly string[] | null;
  own: Bytecode | null;
  /** Null: it has none, and runs once. */
  mappings: readonly { filters: Bytecode | null; isDisabled: boolean }[] | null;
  masking: Bytecode | null;
  /** Whether its program looks at groups. Then it gets them as they are now. */
  readsGroups: boolean;
}

/** The functions of a project that react to its events. */
export interface Definitions {
  projectId: number;
  /** Counts the changes of the project's functions. */
  version: number;
  project: { id: number; name: string };
  site: string;
  triggers: readonly Trigger[];
}

export interface MatchEventsJob {
  /** Rows of functions/rows/events.ts. */
  bytes: Uint8Array;
  /** The version of the definitions of each project. Events of other projects are left out. */
  versions: readonly [projectId: number, version: number][];
  /** Those that the thread may not know yet. */
  definitions: readonly Definitions[];
  /** Projects whose events are left for later. */
  late: readonly number[];
  /** How long the filters of one project may take, in milliseconds. */
  limit: number;
  /** For how many invocations of one project there is room. An event for which there is not enough is left for later. */
  room: number;
  /** Whether the first event is taken in any case. Otherwise one that leads to too much would never be. */
  takesFirst?: boolean;
  /** How many errors of a function to tell about. The others are only counted. A few by default. */
  mostErrors?: number;
}

/** An event for which a function runs. */
export interface MatchedEvent extends Omit<NewInvocation, 'id' | 'clock' | 'seed'> {
  receivedAt: number;
  /** The key of masking. Null: it is not masked. */
  mask: string | null;
}

export interface FilterError {
  projectId: number;
  functionId: string;
  uuid: string;
  message: string;
}

export interface MatchedEvents {
  /** Projects whose definitions the thread needs. If there are any, it only gives the rows back. */
  needs: number[];
  bytes?: Uint8Array;
  /** Which rows there were of each transaction: their ids of 20 bytes. */
  seen: [xid: number, ids: Uint8Array][];
  matched: MatchedEvent[];
  /** How often a function did not run, by the reason. */
  counts: [projectId: number, functionId: string, name: 'filtered' | 'filtering_failed', count: number][];
  errors: FilterError[];
  /** Events that are left, because the filters of their project take too long. */
  late: [projectId: number, keys: Uint8Array][];
}

/** Errors of a function that a job tells about by default. */
const MOST_ERRORS = 5;

/** Of the event that is looked at. */
const moment = new Moment();

interface Prepared {
  trigger: Trigger;
  /** How many invocations an event may lead to. */
  most: number;
  /** How often it did not run in this job: because of its filters, and because they failed. */
  filtered: number;
  failed: number;
  own: Filter;
  mappings: (Filter | null)[] | null;
  /** Whether the texts of the event exclude it. Undefined: they never do. */
  isExcluded: (() => boolean) | undefined;
}

/** The functions of a project, ready to be asked. */
class Project {
  readonly definitions: Definitions;
  readonly all: Prepared[] = [];
  readonly #ofAny: Prepared[] = [];
  readonly #byName = new Map<string, Prepared[]>();
  readonly #texts = new TextExclusions();
  readonly #hasTexts: boolean;
  /** Which parts of an event filters look at. What nobody looks at is not read. */
  readonly looksAtPerson: boolean;
  readonly looksAtPersonId: boolean;
  readonly looksAtUuid: boolean;
  readonly looksAtTime: boolean;
  readonly looksAtDistinctId: boolean;
  readonly looksAtElements: boolean;
  readonly looksAtCohorts: boolean;

  constructor(definitions: Definitions) {
    this.definitions = definitions;
    for (const trigger of definitions.triggers) {
      const prepared: Prepared = {
        ...{ trigger, most: trigger.mappings?.length ?? 1, filtered: 0, failed: 0 },
        own: filterOf(trigger.own, moment),
        mappings:
          trigger.mappings?.map((one) => (one.isDisabled ? null : filterOf(one.filters, moment))) ?? null,
        isExcluded: this.#texts.of(exclusionOfTrigger(trigger)),
      };
      this.all.push(prepared);
      if (trigger.names === null) this.#ofAny.push(prepared);
      else {
        for (const name of new Set(trigger.names)) {
          const list = this.#byName.get(name);
          if (list) list.push(prepared);
          else this.#byName.set(name, [prepared]);
        }
      }
    }
    this.#hasTexts = this.all.some((one) => one.isExcluded);
    const code = definitions.triggers.flatMap(({ own, mappings, masking }) => [
      ...[own, masking],
      ...(mappings ?? []).map((one) => one.filters),
    ]);
    const words = new Set(code.flatMap((one) => one?.filter((word) => typeof word === 'string') ?? []));
    // The key of masking sees the whole event.
    const masks = definitions.triggers.some(({ masking }) => masking);
    const names = (...wanted: string[]) => masks || wanted.some((word) => words.has(word));
    this.looksAtCohorts = words.has(COHORT_IDS);
    this.looksAtPerson = this.looksAtCohorts || names('person', 'pdi');
    this.looksAtPersonId = names('id', 'person_id');
    this.looksAtDistinctId = names('distinct_id');
    this.looksAtElements = [...words].some((word) => String(word).startsWith('elements_chain')) || masks;
    this.looksAtUuid = names('uuid');
    this.looksAtTime = names('timestamp');
  }

  /** Those of the candidates that the texts of the event do not exclude. The others have looked at it. */
  left(candidates: readonly Prepared[], row: EventRow): readonly Prepared[] {
    if (!this.#hasTexts) return candidates;
    const hasPerson = this.looksAtPerson && row.personMode !== PERSONLESS;
    if (!this.#texts.open(row.propertyBytes, hasPerson ? row.personBytes : '')) return candidates;
    const { storedAt } = row;
    return candidates.filter(({ trigger, isExcluded }) => storedAt >= trigger.enabledAt && !isExcluded?.());
  }

  /** The functions that may want an event of this name. */
  candidates(name: string): readonly Prepared[] {
    const named = this.#byName.get(name);
    if (!named) return this.#ofAny;
    return this.#ofAny.length === 0 ? named : [...named, ...this.#ofAny];
  }
}

/** What this thread knows. */
const projects = new LRUCache<number, Project>({ max: 1_000 });

function learn(definitions: Definitions): void {
  // One that this drops is asked for again if it is needed.
  projects.set(definitions.projectId, new Project(definitions));
}

export function matchEvents(job: MatchEventsJob): MatchedEvents {
  for (const one of job.definitions) learn(one);
  const needs = job.versions.flatMap(([projectId, version]) =>
    projects.get(projectId)?.definitions.version === version ? [] : [projectId],
  );
  if (needs.length > 0)
    return { needs, bytes: job.bytes, seen: [], matched: [], counts: [], errors: [], late: [] };
  return new Matching(job).run();
}

/** The ids of rows, one after the other. */
class Ids {
  #bytes = Buffer.allocUnsafeSlow(64 * ID_BYTES);
  #size = 0;

  add(row: EventRow): void {
    if (this.#size === this.#bytes.length) {
      const larger = Buffer.allocUnsafeSlow(this.#size * 2);
      this.#bytes.copy(larger);
      this.#bytes = larger;
    }
    row.writeId(this.#bytes, this.#size);
    this.#size += ID_BYTES;
  }

  get all(): Uint8Array {
    return this.#bytes.subarray(0, this.#size);
  }
}

class Matching {
  readonly #job: MatchEventsJob;
  readonly #seen = new Map<number, Ids>();
  readonly #matched: MatchedEvent[] = [];
  readonly #asked = new Set<Project>();
  readonly #errors: FilterError[] = [];
  readonly #late = new Map<number, Buffer[]>();
  readonly #spent = new Map<number, number>();
  /** How many invocations each project has. */
  readonly #found = new Map<number, number>();

  constructor(job: MatchEventsJob) {
    this.#job = job;
    for (const projectId of job.late) this.#late.set(projectId, []);
  }

  run(): MatchedEvents {
    const { bytes, versions, limit, room } = this.#job;
    const start = processorTime();
    const wanted = new Set(versions.map(([projectId]) => projectId));
    for (const row of rowsIn(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength))) {
      const { xid } = row;
      let ids = this.#seen.get(xid);
      if (!ids) {
        ids = new Ids();
        this.#seen.set(xid, ids);
      }
      ids.add(row);
      const { projectId } = row;
      if (!wanted.has(projectId)) continue;
      const late = this.#late.get(projectId);
      if (late) {
        late.push(row.key);
        continue;
      }
      const project = projects.get(projectId) as Project;
      const candidates = project.candidates(row.event);
      if (candidates.length === 0) continue;
      const began = performance.now();
      this.#asked.add(project);
      const left = project.left(candidates, row);
      if (left.length > 0 && !this.#askWithin(room, project, left, row)) {
        this.#late.set(projectId, [row.key]);
        continue;
      }
      if (left.length < candidates.length) countExcluded(candidates, left, row);
      let spent = (this.#spent.get(projectId) ?? 0) + performance.now() - began;
      // A thread that waits for the processor is not slow. Asking for its time costs too much to do it for each event.
      if (spent > limit) spent = Math.min(spent, processorTime() - start);
      this.#spent.set(projectId, spent);
      if (spent > limit) this.#late.set(projectId, []);
    }
    return {
      ...{ needs: [], matched: this.#matched, errors: this.#errors },
      seen: [...this.#seen].map(([xid, { all }]) => [xid, all]),
      counts: [...this.#asked].flatMap(countsOf),
      late: [...this.#late]
        .filter(([, keys]) => keys.length > 0)
        .map(([projectId, keys]) => [projectId, Buffer.concat(keys)]),
    };
  }

  /** Asks about an event, unless it leads to more invocations than there is room for. Then nothing of it counts. */
  #askWithin(room: number, project: Project, candidates: readonly Prepared[], row: EventRow): boolean {
    const { projectId } = row;
    const found = this.#found.get(projectId) ?? 0;
    const [matched, errors] = [this.#matched.length, this.#errors.length];
    const isSafe = found + candidates.reduce((sum, one) => sum + one.most, 0) <= room;
    const before = isSafe ? [] : candidates.map(({ filtered, failed }) => ({ filtered, failed }));
    this.#ask(project, candidates, row);
    const all = found + this.#matched.length - matched;
    if (all > room && (found > 0 || !this.#job.takesFirst)) {
      this.#matched.length = matched;
      this.#errors.length = errors;
      for (const [index, one] of candidates.entries()) Object.assign(one, before[index]);
      return false;
    }
    this.#found.set(projectId, all);
    return true;
  }

  #ask(project: Project, candidates: readonly Prepared[], row: EventRow): void {
    const { storedAt } = row;
    const facts = factsOf(project, row);
    const listedIn = project.looksAtCohorts ? row.listedIn : undefined;
    const globals = filterGlobalsOf(facts.event, facts.person, facts.groups, listedIn);
    moment.set(row.receivedAt, () => storedAt);
    for (const prepared of candidates) {
      const { trigger, own, mappings } = prepared;
      if (storedAt < trigger.enabledAt) continue;
      const verdict = own(globals);
      if (!verdict.matched) {
        this.#refuse(project, prepared, row, verdict.error);
        continue;
      }
      let ran = false;
      for (const [index, filter] of (mappings ?? [ALWAYS]).entries()) {
        const mapped = filter?.(globals);
        if (mapped?.matched) {
          ran = true;
          this.#matched.push(this.#matchedEvent(project, trigger, row, facts, mappings ? index : null));
        } else if (mapped?.error !== undefined) this.#refuse(project, prepared, row, mapped.error);
      }
      if (!ran) this.#refuse(project, prepared, row, undefined);
    }
  }

  #matchedEvent(
    { definitions }: Project,
    trigger: Trigger,
    row: EventRow,
    facts: ReturnType<typeof factsOf>,
    mapping: number | null,
  ): MatchedEvent {
    const { projectId, uuid, timestamp, distinctId, receivedAt, personMode, personId } = row;
    let mask: string | null = null;
    if (trigger.masking) {
      const globals = programGlobals({
        ...{ project: definitions.project, site: definitions.site },
        source: { id: trigger.id, name: trigger.name },
        ...{ event: { ...facts.event, uuid, timestamp }, groups: facts.groups },
        // The key may name the person, although no filter does.
        person: facts.person,
      });
      const frame = frameOf({ uuid, created_at: new Date(receivedAt).toISOString() });
      const found = maskKey(trigger.masking, globals, surroundingsIn(frame));
      mask = found.key && createHash('md5').update(found.key).digest('hex');
    }
    return {
      ...{
        projectId,
        functionId: trigger.id,
        version: trigger.version,
        mapping,
        uuid,
        timestamp,
        distinctId,
      },
      ...{ receivedAt, mask, personId: personMode === PERSONLESS ? null : personId },
      groups: trigger.readsGroups ? row.groups : null,
    };
  }

  #refuse({ definitions }: Project, prepared: Prepared, row: EventRow, error: string | undefined): void {
    if (error === undefined) {
      prepared.filtered += 1;
      return;
    }
    prepared.failed += 1;
    if (prepared.failed > (this.#job.mostErrors ?? MOST_ERRORS)) return;
    const { projectId } = definitions;
    this.#errors.push({ projectId, functionId: prepared.trigger.id, uuid: row.uuid, message: error });
  }
}

/** Counts the event for those of the candidates that are not left. The others have the same order. */
function countExcluded(candidates: readonly Prepared[], left: readonly Prepared[], { storedAt }: EventRow) {
  let at = 0;
  for (const one of candidates) {
    if (one === left[at]) at += 1;
    else if (storedAt >= one.trigger.enabledAt) one.filtered += 1;
  }
}

/** Returns how often the functions of a project did not run, and begins to count anew. */
function countsOf({ definitions: { projectId }, all }: Project): MatchedEvents['counts'] {
  const counts: MatchedEvents['counts'] = [];
  for (const prepared of all) {
    const { trigger, filtered, failed } = prepared;
    if (filtered > 0) counts.push([projectId, trigger.id, 'filtered', filtered]);
    if (failed > 0) counts.push([projectId, trigger.id, 'filtering_failed', failed]);
    prepared.filtered = 0;
    prepared.failed = 0;
  }
  return counts;
}

const exclusionOfTrigger = ({ own, mappings }: Trigger) =>
  exclusionOfFunction({
    own,
    mappings: mappings?.filter((one) => !one.isDisabled).map((one) => one.filters) ?? null,
  });

const PERSONLESS = 'propertyless';
const ALWAYS: Filter = () => ({ matched: true });

function factsOf(project: Project, row: EventRow) {
  const { groups } = row;
  const hasPerson = project.looksAtPerson && row.personMode !== PERSONLESS;
  return {
    event: {
      uuid: project.looksAtUuid ? row.uuid : '',
      event: row.event,
      timestamp: project.looksAtTime ? row.timestamp : '',
      distinct_id: project.looksAtDistinctId ? row.distinctId : '',
      elements_chain: project.looksAtElements ? row.elementsChain : '',
      properties: JSON.parse(row.properties) as Record<string, unknown>,
    },
    person: hasPerson
      ? ({
          id: project.looksAtPersonId ? row.personId : '',
          properties: JSON.parse(row.personProperties),
        } as PersonFacts)
      : null,
    groups:
      groups === null ? [] : (JSON.parse(groups) as GroupFacts[]).map((one) => ({ ...one, id: one.key })),
  };
}
