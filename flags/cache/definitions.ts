import type { Listener } from '../../db/listen.ts';
import { pacing } from '../../db/loop-turns.ts';
import type { CohortDefinition } from '../../properties/index.ts';
import { Cohorts, prepareCohort } from '../../properties/index.ts';
import type { Logger } from '../../telemetry/logger.ts';
import { Quiet } from '../../telemetry/quiet.ts';
import { cacheOfSize } from '../../values/cache-of-size.ts';
import { parseExactJson } from '../../values/exact-json.ts';
import { type CompiledFlag, compilingFlag } from '../engine/compile.ts';
import { type FlagSet, flagSet } from '../engine/flag-set.ts';
import { inSteps } from '../engine/steps.ts';
import {
  DEFINITIONS_CHANNEL,
  type DefinitionChanges,
  type FlagDefinitionRow,
  type FlagProjectRow,
} from '../rows/definitions.ts';
import { type CohortRow, copyOf, type DefinitionCopies, rowsOf } from './copy.ts';

/** The flags of a project, and what a process needs to know beside them. */
export interface ProjectFlags {
  projectId: number;
  organizationId: string;
  /** How many requests the organization may make in a month. Null: as many as the setting says. */
  requestsPerMonth: number | null;
  set: FlagSet;
  /** The rows that the set was made of, for whoever shows them. */
  rows: readonly FlagDefinitionRow[];
  cohorts: readonly CohortRow[];
  groupTypes: FlagProjectRow['group_types'];
  /** Changes with every change of a definition, of a cohort or of a group type. */
  revision: number;
}

export interface DefinitionsOptions {
  listener: Pick<Listener, 'subscribe' | 'isListening'>;
  logger: Pick<Logger, 'warn'>;
  /** What is known of the projects that this process has not read yet. */
  copies?: DefinitionCopies | undefined;
  /** Milliseconds that the database has for the first answer about a project of which there is a copy. */
  patience?: number;
  readFlags(projectId: number, known: readonly { id: number; stamp: string }[]): Promise<DefinitionChanges>;
  /** Cohorts that are known and have not changed are the same objects. */
  readCohorts(projectId: number, known: readonly CohortRow[]): Promise<CohortRow[]>;
  /** A flag was replaced by a newer version of it. */
  onReplaced?(projectId: number, flag: CompiledFlag): void;
  now?: () => number;
  /** How many bytes of definitions are kept. Those of projects that nobody asks for go first. */
  mostKept?: number;
}

/** Should a notification of Postgres be lost unnoticed, a change is seen after so long. */
const HEARD_FRESH_FOR = 10_000;
const UNHEARD_FRESH_FOR = 2_000;
const PATIENCE = 1_000;
/** After a failure, nobody asks for so long. */
const RETRY_AFTER = 1_000;
const MOST_KEPT = 128 * 1024 * 1024;
/** How many projects are read at once. */
const AT_ONCE = 4;

interface Entry {
  flags: ProjectFlags | undefined;
  compiled: Map<number, { row: FlagDefinitionRow; overrides: string; flag: CompiledFlag }>;
  /** Tells whether anything differs from what was read before. */
  signature: string;
  bytes: number;
  at: number;
  isChanged: boolean;
  failedAt: number;
}

/** The definitions of projects, in memory. */
export interface Definitions {
  /** The flags of a project, mostly without a promise. Undefined: there is no such project. */
  of(projectId: number): ProjectFlags | undefined | Promise<ProjectFlags | undefined>;
  /** The flags of a project as they are stored now, whatever has been heard of changes. */
  fresh(projectId: number): Promise<ProjectFlags | undefined>;
  /** What is in memory of a project. */
  known(projectId: number): ProjectFlags | undefined;
  /** The projects in memory. */
  all(): Iterable<ProjectFlags>;
  /** Ends with what is being read. */
  close(): Promise<void>;
}

const definitionOf = (row: FlagDefinitionRow, overrides: ReadonlyMap<string, boolean | string>) => ({
  id: row.id,
  key: row.key,
  version: row.version,
  filters: parseExactJson(row.filters),
  ensureExperienceContinuity: row.ensure_experience_continuity,
  runtime: row.evaluation_runtime,
  bucketing: row.bucketing_identifier,
  contexts: row.evaluation_contexts,
  isRemoteConfiguration: row.is_remote_configuration,
  hasEncryptedPayloads: row.has_encrypted_payloads,
  isActive: row.active,
  overrides,
});

/**
 * Keeps the definitions of projects in memory. A change replaces them; they are never dropped because they might be out of
 * date. So flags are there while the database is not.
 */
export function createDefinitions(options: DefinitionsOptions): Definitions {
  const { listener, logger, readFlags, readCohorts, copies } = options;
  const { now = Date.now, mostKept = MOST_KEPT, patience = PATIENCE } = options;
  const entries = cacheOfSize<number, Entry>(mostKept, (entry) => entry.bytes);
  const reading = new Map<number, Promise<Entry>>();
  const firsts = new Map<number, Promise<Entry>>();
  /** Projects of which a change was told while they were read. */
  const changedMeanwhile = new Set<number>();
  const waiting: (() => void)[] = [];
  const quiet = new Quiet();
  let atWork = 0;
  let isClosed = false;
  let revision = 0;

  async function inTurn<T>(work: () => Promise<T>): Promise<T> {
    if (atWork >= AT_ONCE) await new Promise<void>((resolve) => waiting.push(resolve));
    else atWork += 1;
    try {
      return await work();
    } finally {
      const next = waiting.shift();
      if (next) next();
      else atWork -= 1;
    }
  }

  /** Reads what is new about a project. */
  async function build(projectId: number, before: Entry | undefined): Promise<Entry> {
    const at = now();
    const known = [...(before?.compiled.values() ?? [])].map(({ row }) => ({ id: row.id, stamp: row.stamp }));
    const [changes, cohorts] = await Promise.all([
      readFlags(projectId, known),
      readCohorts(projectId, before?.flags?.cohorts ?? []),
    ]);
    const entry = await prepare(projectId, before, changes, cohorts, at);
    const { flags, signature } = entry;
    if (!flags) copies?.remove(projectId);
    else if (signature !== before?.signature) {
      const { project } = changes;
      copies?.save(projectId, () =>
        copyOf({ project: project as FlagProjectRow, flags: flags.rows, cohorts }),
      );
    }
    return entry;
  }

  /** Prepares what changed. Long definitions are prepared in several turns of the event loop. */
  async function prepare(
    projectId: number,
    before: Entry | undefined,
    { project, stamps, changed }: DefinitionChanges,
    cohorts: readonly CohortRow[],
    at: number,
  ): Promise<Entry> {
    const base = { at, isChanged: false, failedAt: 0 };
    if (!project) {
      return { ...base, flags: undefined, compiled: new Map(), signature: '', bytes: 0 };
    }
    const rows = new Map(changed.map((row) => [row.id, row]));
    const overrides = new Map<number, Map<string, boolean | string>>();
    for (const one of project.overrides) {
      const ofFlag = overrides.get(one.flag_id) ?? new Map();
      overrides.set(one.flag_id, ofFlag.set(one.distinct_id, one.value));
    }
    const compiled: Entry['compiled'] = new Map();
    let size = 0;
    const rest = pacing();
    for (const { id } of stamps) {
      const old = before?.compiled.get(id);
      const row = rows.get(id) ?? old?.row;
      if (!row) continue;
      const ofFlag = overrides.get(id) ?? new Map<string, boolean | string>();
      const text = JSON.stringify([...ofFlag]);
      const isSame = old !== undefined && old.row === row && old.overrides === text;
      if (old && !isSame) options.onReplaced?.(projectId, old.flag);
      // One flag can have thousands of patterns.
      const made = isSame
        ? old
        : { row, overrides: text, flag: await inSteps(compilingFlag(definitionOf(row, ofFlag)), rest) };
      compiled.set(id, made);
      size += row.filters.length + text.length;
      await rest();
    }
    const prepared = await cohortsOf(cohorts, before?.flags, rest);
    revision += 1;
    const flags: ProjectFlags = {
      projectId,
      organizationId: project.organization_id,
      requestsPerMonth: project.flag_requests_per_month,
      set: flagSet(
        [...compiled.values()].map((one) => one.flag),
        {
          cohorts: prepared,
          groupTypes: new Map(project.group_types.map((one) => [one.group_type, one.group_type_index])),
          timezone: project.timezone,
        },
      ),
      rows: [...compiled.values()].map((one) => one.row),
      cohorts,
      groupTypes: project.group_types,
      revision,
    };
    const versions = cohorts.map((one) => [one.id, one.stamp ?? one.filters]);
    const signature = JSON.stringify([project, stamps, versions]);
    const bytes = cohorts.reduce((sum, one) => sum + one.filters.length, size);
    return { ...base, flags, compiled, signature, bytes };
  }

  /**
   * The first answer about a project. If the database has none in time, the copy serves, and the database is asked again
   * as soon as it can be.
   */
  async function first(projectId: number): Promise<Entry> {
    const answer = reading.get(projectId) ?? read(projectId);
    if (!copies) return answer;
    const late = Promise.withResolvers<undefined>();
    const timer = setTimeout(() => late.resolve(undefined), patience);
    try {
      const entry = await Promise.race([answer, late.promise]);
      if (entry) return entry;
    } catch {
      // Who asks without a copy gets the failure, below.
    } finally {
      clearTimeout(timer);
    }
    const lines = await copies.read(projectId);
    const newer = entries.get(projectId);
    if (newer) return newer;
    if (!lines) return answer;
    const { project, flags, cohorts } = rowsOf(lines);
    const stamps = flags.map(({ id, stamp }) => ({ id, stamp }));
    const changes = { project, stamps, changed: [...flags] };
    const entry = await prepare(projectId, undefined, changes, cohorts, now());
    entry.isChanged = true;
    entry.failedAt = now();
    if (entries.has(projectId)) return entries.get(projectId) as Entry;
    entries.set(projectId, entry);
    quiet.tell((untold) =>
      logger.warn({ project_id: projectId, untold }, 'flags serve what was copied to disk'),
    );
    return entry;
  }

  /** Reads a project. A change that is told meanwhile leads to another reading. */
  function read(projectId: number): Promise<Entry> {
    const before = entries.peek(projectId);
    changedMeanwhile.delete(projectId);
    const answer = inTurn(() => build(projectId, before)).then(
      (entry) => {
        entry.isChanged = changedMeanwhile.delete(projectId);
        entries.set(projectId, entry);
        reading.delete(projectId);
        if (entry.isChanged) refresh(projectId);
        return entry;
      },
      (error) => {
        reading.delete(projectId);
        if (before) {
          before.isChanged = true;
          before.failedAt = now();
        }
        throw error;
      },
    );
    reading.set(projectId, answer);
    return answer;
  }

  function firstOf(projectId: number): Promise<Entry> {
    const under = firsts.get(projectId);
    if (under) return under;
    const answer = first(projectId).finally(() => firsts.delete(projectId));
    firsts.set(projectId, answer);
    return answer;
  }

  function refresh(projectId: number): void {
    if (isClosed || reading.has(projectId)) return;
    read(projectId).catch((error) =>
      quiet.tell((untold) =>
        logger.warn({ err: error, project_id: projectId, untold }, 'flags serve earlier definitions'),
      ),
    );
  }

  const unsubscribe = listener.subscribe(DEFINITIONS_CHANNEL, {
    told(payload) {
      const projectId = Number(payload);
      if (reading.has(projectId)) changedMeanwhile.add(projectId);
      const entry = entries.peek(projectId);
      if (entry) entry.isChanged = true;
      // A copy is kept up to date, too, if this process has not been asked for the project yet.
      if (entry || copies?.has(projectId)) refresh(projectId);
    },
    missed() {
      for (const projectId of reading.keys()) changedMeanwhile.add(projectId);
      for (const entry of entries.values()) entry.isChanged = true;
    },
  });

  return {
    of(projectId) {
      const entry = entries.get(projectId);
      if (!entry) return firstOf(projectId).then((one) => one.flags);
      const time = now();
      const freshFor = listener.isListening() ? HEARD_FRESH_FOR : UNHEARD_FRESH_FOR;
      const isOld = entry.isChanged || time - entry.at >= freshFor;
      if (isOld && time - entry.failedAt >= RETRY_AFTER) refresh(projectId);
      return entry.flags;
    },
    async fresh(projectId) {
      // A reading that has begun may have missed what was stored just before.
      await reading.get(projectId)?.catch(() => undefined);
      return (await (reading.get(projectId) ?? read(projectId))).flags;
    },
    known: (projectId) => entries.peek(projectId)?.flags,
    *all() {
      for (const { flags } of entries.values()) if (flags) yield flags;
    },
    async close() {
      unsubscribe();
      isClosed = true;
      while (reading.size > 0) await Promise.allSettled([...reading.values(), ...firsts.values()]);
    },
  };
}

/** The cohorts of rows, as they were read. */
const readOf = new WeakMap<CohortRow, CohortDefinition>();

/** Prepares cohorts. Those that have not changed are not read again, and if none has, all stay what they are. */
async function cohortsOf(
  rows: readonly CohortRow[],
  before: ProjectFlags | undefined,
  rest: () => Promise<void> | undefined,
): Promise<Cohorts> {
  const isSame =
    before?.cohorts.length === rows.length && rows.every((row, at) => row === before.cohorts[at]);
  if (isSame) return before.set.cohorts;
  const definitions: CohortDefinition[] = [];
  for (const row of rows) {
    const definition = readOf.get(row) ?? {
      ...{ id: row.id, isStatic: row.is_static },
      filters: parseExactJson(row.filters),
    };
    readOf.set(row, definition);
    prepareCohort(definition);
    definitions.push(definition);
    await rest();
  }
  return new Cohorts(definitions);
}
