import type { KnownSince, PastRow, ReadPast } from '../db/past-versions.ts';
import type { Transaction } from '../db/pool.ts';
import { type CohortDefinition, Cohorts } from '../properties/index.ts';
import { refuse } from '../refusals.ts';
import { parseExactJson } from '../values/exact-json.ts';
import { isObject } from '../values/json-object.ts';
import { type CompiledFlag, compileFlag } from './engine/compile.ts';
import { own } from './engine/definition.ts';
import { Evaluation } from './engine/evaluate.ts';
import { flagSet } from './engine/flag-set.ts';
import { type Explanation, explanationOf, Seen } from './explain.ts';
import { readHashKeys } from './rows/hash-keys.ts';
import { flagsAt, flagsForgottenAt, overridesAt, personAt } from './rows/past.ts';
import { readGroups } from './rows/subjects.ts';
import { storedSubject } from './stored-subject.ts';

/** Reads what other products remember of the past. */
export interface PastDependencies {
  cohortsAt: ReadPast<PastRow>;
  cohortsForgottenAt: ReadPast<KnownSince>;
  membershipsAt(
    queryable: Transaction,
    projectId: number,
    personId: string,
    cohortIds: readonly number[],
    at: string,
  ): Promise<number[]>;
}

export interface PastQuery {
  projectId: number;
  flagId: number;
  timezone: string;
  /** The types of groups of the project, by index. */
  groupTypes: ReadonlyMap<string, number>;
  /** An instant as Postgres reads it. */
  at: string;
  distinctId: string;
  deviceId: string;
  groups: Readonly<Record<string, string>>;
}

export interface PastExplanation extends Explanation {
  at: string;
  /** Whether the flag was active then. If not, clients did not get it. */
  active: boolean;
  rests_on: {
    flags: { id: number; key: string; version: number; changed_at: string }[];
    cohorts: { id: number; name: string; version: number; changed_at: string }[];
    /** The event that shows the person. Null: there was none yet. */
    person: { event_uuid: string; event: string; timestamp: string } | null;
    notes: string[];
  };
}

interface FlagDocument {
  key: string;
  filters: unknown;
  active: boolean;
  deleted: boolean;
  ensure_experience_continuity: boolean;
  is_remote_configuration: boolean;
  has_encrypted_payloads: boolean;
  evaluation_runtime: 'all' | 'client' | 'server';
  bucketing_identifier: 'distinct_id' | 'device_id';
  evaluation_contexts: string[];
}

interface CohortDocument {
  name: string;
  is_static: boolean;
  filters: unknown;
  deleted: boolean;
}

/** No flag and no cohort asks about more, directly or through others. */
const MOST = 5_000;

interface PastFlag {
  row: PastRow;
  document: FlagDocument;
  flag: CompiledFlag;
}

function compiled(row: PastRow, overrides: ReadonlyMap<string, boolean | string>): PastFlag {
  const document = parseExactJson(row.document) as FlagDocument;
  const flag = compileFlag({
    id: row.id,
    key: document.key,
    version: row.version,
    filters: document.filters,
    ensureExperienceContinuity: document.ensure_experience_continuity,
    runtime: document.evaluation_runtime,
    bucketing: document.bucketing_identifier,
    contexts: document.evaluation_contexts,
    isRemoteConfiguration: document.is_remote_configuration,
    hasEncryptedPayloads: document.has_encrypted_payloads,
    isActive: document.active && !document.deleted,
    overrides,
  });
  return { row, document, flag };
}

/** Reads things and all that they name, a level at a time. */
async function reached<T>(
  first: readonly number[],
  read: (ids: readonly number[]) => Promise<T[]>,
  next: (found: T) => readonly number[],
): Promise<T[]> {
  const all: T[] = [];
  const asked = new Set(first);
  for (let open = [...first]; open.length > 0 && asked.size <= MOST; ) {
    const found = await read(open);
    all.push(...found);
    open = [...new Set(found.flatMap(next))].filter((id) => !asked.has(id));
    for (const id of open) asked.add(id);
  }
  return all;
}

/** The cohorts that the filters of a cohort name. */
function cohortsIn(node: unknown): number[] {
  if (!isObject(node)) return [];
  const values = own(node, 'values');
  if (Array.isArray(values)) return values.flatMap(cohortsIn);
  return node.type === 'cohort' || node.type === 'static-cohort' ? [Number(node.value)] : [];
}

/** Refuses to tell of a time whose versions are no longer kept. */
function refuseForgotten(kind: string, forgotten: readonly KnownSince[], at: string): void {
  const [first] = forgotten;
  if (!first) return;
  const since = new Date(first.since).toISOString();
  throw refuse.invalid(
    'at',
    `What the ${kind} "${first.name}" was at ${at} is no longer known: its versions are kept from ${since} on.`,
  );
}

/**
 * Explains what a flag was for somebody at a time: by its version of that time, by the versions of all that it names, and by
 * the last event of the person before it.
 */
export async function explainPast(
  { cohortsAt, cohortsForgottenAt, membershipsAt }: PastDependencies,
  client: Transaction,
  query: PastQuery,
): Promise<PastExplanation> {
  const { projectId, flagId, at, distinctId } = query;
  const byHand = new Map(
    (await overridesAt(client, projectId, distinctId, at)).map((one) => [one.flag_id, one.value]),
  );
  const overrides = (id: number) => new Map(byHand.has(id) ? [[distinctId, byHand.get(id) as string]] : []);
  const flags = await reached(
    [flagId],
    async (ids) => {
      refuseForgotten('flag', await flagsForgottenAt(client, projectId, ids, at), at);
      return (await flagsAt(client, projectId, ids, at)).map((row) => compiled(row, overrides(row.id)));
    },
    ({ flag }) => flag.asks,
  );
  const own = flags.find(({ row }) => row.id === flagId);
  if (!own) throw refuse.invalid('at', `The flag did not exist yet at ${at}.`);
  if (own.document.deleted) throw refuse.invalid('at', `The flag was deleted at ${at}.`);
  const cohorts = await reached(
    [...new Set(flags.flatMap(({ flag }) => flag.cohorts))],
    async (ids) => {
      refuseForgotten('cohort', await cohortsForgottenAt(client, projectId, ids, at), at);
      return (await cohortsAt(client, projectId, ids, at)).map((row) => ({
        row,
        document: parseExactJson(row.document) as CohortDocument,
      }));
    },
    ({ document }) => cohortsIn((document.filters as { properties?: unknown } | null)?.properties),
  );
  const known = cohorts.filter(({ document }) => !document.deleted);
  const person = distinctId === '' ? undefined : await personAt(client, projectId, distinctId, at);
  const listed = known.filter(({ document }) => document.is_static).map(({ row }) => row.id);
  const staticCohorts = person ? await membershipsAt(client, projectId, person.person_id, listed, at) : [];
  const continuous = flags.some(({ flag }) => flag.definition.ensureExperienceContinuity);
  const hashKeys = continuous ? await readHashKeys(client, projectId, [distinctId]) : new Map();
  const groups = await groupsOf(client, query, flags);
  const set = flagSet(
    flags.filter(({ document }) => !document.deleted).map(({ flag }) => flag),
    {
      cohorts: new Cohorts(
        known.map(
          ({ row, document }): CohortDefinition => ({
            id: row.id,
            isStatic: document.is_static,
            filters: document.filters,
          }),
        ),
      ),
      groupTypes: query.groupTypes,
      timezone: query.timezone,
    },
  );
  const subject = storedSubject({
    distinctId,
    deviceId: query.deviceId,
    properties: person && (parseExactJson(person.properties) as Record<string, unknown>),
    staticCohorts: new Set(staticCohorts),
    hashKeys: new Map([...hashKeys].map(([key, { hashKey }]) => [key, hashKey])),
    groups,
  });
  const seen = new Seen(flagId);
  const evaluation = new Evaluation(set, subject, Date.parse(at), undefined, seen.watch);
  return {
    ...explanationOf({ set, subject, evaluation }, own.flag, seen),
    at,
    active: own.document.active,
    rests_on: {
      flags: flags.map(({ row, document }) => ({
        ...{ id: row.id, key: document.key, version: row.version, changed_at: row.changed_at },
      })),
      cohorts: known.map(({ row, document }) => ({
        ...{ id: row.id, name: document.name, version: row.version, changed_at: row.changed_at },
      })),
      person: person ? { event_uuid: person.uuid, event: person.event, timestamp: person.timestamp } : null,
      notes: notesOf({
        person: person !== undefined,
        active: own.document.active,
        lists: listed.length > 0,
        continuous,
        groups: groups.size > 0,
        byHand: byHand.size > 0,
      }),
    },
  };
}

async function groupsOf(client: Transaction, query: PastQuery, flags: readonly PastFlag[]) {
  const names = JSON.stringify([...new Set(flags.flatMap(({ flag }) => flag.groupProperties))]);
  const wanted = Object.entries(query.groups).flatMap(([type, key]) => {
    const index = query.groupTypes.get(type);
    return index === undefined || key === '' ? [] : [{ projectId: query.projectId, index, key, names }];
  });
  const texts = wanted.length > 0 ? await readGroups(client, wanted) : [];
  return new Map(
    wanted.map(({ index, key }, place) => {
      const text = texts[place];
      const properties =
        typeof text === 'string' ? (parseExactJson(text) as Record<string, unknown>) : undefined;
      return [index, { key, properties }] as const;
    }),
  );
}

/** Says what the answer cannot know. */
function notesOf(
  what: Record<'person' | 'active' | 'lists' | 'continuous' | 'groups' | 'byHand', boolean>,
): string[] {
  const notes = [
    what.person
      ? 'The person is shown as the event found them. What requests said of the person then is not known.'
      : 'No event of this distinct id had come in by then, so nothing was known of the person.',
  ];
  if (!what.active)
    notes.push('The flag was disabled then: clients did not get it. This is what its conditions said.');
  if (what.lists)
    notes.push(
      'Persons who were taken out of static cohorts since then count as if they had not been in them.',
    );
  if (what.continuous) notes.push('Ids that are remembered for experience continuity are those of today.');
  if (what.groups) notes.push('Properties of groups are those of today.');
  notes.push(
    what.byHand
      ? 'A value that was set by hand before then decides.'
      : 'Values that were set by hand and changed or taken away since then are not known.',
  );
  return notes;
}
