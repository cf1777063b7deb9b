// What programs and filters see of an event.
import { type FunctionTypeName, typeOf } from './types.ts';

export interface EventFacts {
  uuid: string;
  event: string;
  distinct_id: string;
  properties: Record<string, unknown>;
  /** In ISO 8601. */
  timestamp: string;
  elements_chain: string;
}

export interface PersonFacts {
  id: string;
  properties: Record<string, unknown>;
}

export interface GroupFacts {
  type: string;
  index: number;
  key: string;
  properties: Record<string, unknown>;
}

/** Everything that is known when a function runs. */
export interface Facts {
  project: { id: number; name: string };
  /** The address under which users see Sluice. */
  site: string;
  source: { id: string; name: string | null };
  event: EventFacts;
  person: PersonFacts | null;
  groups: readonly GroupFacts[];
}

export type Globals = Record<string, unknown>;

const NAMES = ['email', 'name', 'username'];

/** The name of a person for people: the first property that names it, or else the distinct_id. */
function nameOf(properties: Record<string, unknown>, distinctId: string): string {
  const named = NAMES.map((key) => properties[key]).find(
    (value) => value !== undefined && value !== null && value !== '',
  );
  if (named === undefined) return distinctId;
  return typeof named === 'string' ? named : JSON.stringify(named);
}

/** Builds the globals of a program. */
export function programGlobals({ project, site, source, event, person, groups }: Facts): Globals {
  const projectUrl = `${site}/project/${project.id}`;
  const { uuid, timestamp, distinct_id: distinctId } = event;
  return {
    project: { ...project, url: projectUrl },
    event: {
      ...event,
      url: `${projectUrl}/events/${encodeURIComponent(uuid)}/${encodeURIComponent(timestamp)}`,
    },
    ...(person
      ? {
          person: {
            ...person,
            name: nameOf(person.properties, distinctId),
            url: `${projectUrl}/person/${encodeURIComponent(distinctId)}`,
          },
        }
      : {}),
    groups: Object.fromEntries(
      groups.map(({ type, index, key, properties }) => [
        type,
        { id: key, type, index, url: `${projectUrl}/groups/${index}/${encodeURIComponent(key)}`, properties },
      ]),
    ),
    source: { name: source.name ?? '', url: `${projectUrl}/functions/${source.id}/configuration/` },
    variables: {},
  };
}

/**
 * Leaves of the globals what a type of function sees. A transformation runs before an event has a person, groups or a
 * page of its own.
 */
export function seenBy(type: FunctionTypeName, globals: Globals): Globals {
  if (!typeOf(type).isOrdered) return globals;
  return transformationGlobals(globals.project as { id: number; url: string }, globals.event as EventFacts);
}

export function transformationGlobals({ id, url }: { id: number; url: string }, event: EventFacts): Globals {
  const { $current_url: page = '', $elements_chain: chain = '' } = event.properties;
  const { uuid, event: name, distinct_id, properties, timestamp } = event;
  return {
    project: { id, name: '', url },
    event: {
      ...{ uuid, event: name, distinct_id, properties, timestamp, url: page },
      elements_chain: event.elements_chain || chain,
    },
  };
}

/** Completes globals that a client sends: they need an event, and all else has a default. */
export function completeGlobals(given: Globals, facts: Pick<Facts, 'project' | 'site' | 'source'>): Globals {
  const event: EventFacts = {
    ...{ uuid: '', event: '', distinct_id: '', properties: {}, timestamp: '', elements_chain: '' },
    ...(given.event as Partial<EventFacts>),
  };
  const {
    project,
    event: named,
    source,
    groups,
    variables,
  } = programGlobals({
    ...facts,
    ...{ event, person: null, groups: [] },
  });
  return { project, source, groups, variables, ...given, event: { ...(named as object), ...event } };
}

const TAGS = ['a', 'button', 'form', 'input', 'select', 'textarea', 'label'];
const distinct = (found: Iterable<string>) => [...new Set(found)];
const captured = (chain: string, pattern: RegExp) =>
  [...chain.matchAll(pattern)].map(([, one]) => one as string);

const NO_ELEMENTS: Globals = {
  elements_chain: '',
  elements_chain_href: '',
  elements_chain_texts: Object.freeze([]),
  elements_chain_ids: Object.freeze([]),
  elements_chain_elements: Object.freeze([]),
};

/** What filters may ask about the elements of an event. */
function elementFacts(chain: string): Globals {
  if (chain === '') return NO_ELEMENTS;
  const [href = ''] = captured(chain, /(?::|")href="(.*?)"/g);
  return {
    elements_chain: chain,
    elements_chain_href: href,
    elements_chain_texts: distinct(captured(chain, /(?::|")text="(.*?)"/g)),
    elements_chain_ids: distinct(captured(chain, /(?::|")attr_id="(.*?)"/g)),
    elements_chain_elements: distinct(
      captured(chain, new RegExp(`(?:^|;)(${TAGS.join('|')})(?=[.:;]|$)`, 'g')),
    ),
  };
}

const NO_GROUP = Object.freeze({ properties: Object.freeze({}) });

/**
 * Builds the globals of filters out of those of programs. `listedIn`: the static cohorts that list the person, of those that
 * the filters name. Undefined: nobody has looked, so filters that name some fail.
 */
export function filterGlobals(globals: Globals, listedIn?: readonly number[]): Globals {
  const groups = Object.values((globals.groups ?? {}) as Record<string, GroupFacts & { id: string }>);
  const event = globals.event as EventFacts;
  const person = (globals.person ?? null) as PersonFacts | null;
  return filterGlobalsOf(event, person, groups, listedIn, globals.variables);
}

const NO_COHORTS: readonly number[] = Object.freeze([]);

/** Does the same with the parts. It is called for each event and is therefore one literal. */
export function filterGlobalsOf(
  event: EventFacts,
  person: PersonFacts | null,
  groups: readonly { index: number; id: string; properties: Record<string, unknown> }[],
  listedIn?: readonly number[],
  variables: unknown = {},
): Globals {
  const shown = person && { id: person.id, properties: person.properties };
  const properties = event.properties ?? {};
  const chain = event.elements_chain || properties.$elements_chain;
  const elements = elementFacts(typeof chain === 'string' ? chain : '');
  const all: Globals = {
    event: event.event,
    uuid: event.uuid,
    timestamp: event.timestamp,
    distinct_id: event.distinct_id,
    properties,
    person: shown,
    pdi: shown && { distinct_id: event.distinct_id, person_id: shown.id, person: shown },
    elements_chain: elements.elements_chain,
    elements_chain_href: elements.elements_chain_href,
    elements_chain_texts: elements.elements_chain_texts,
    elements_chain_ids: elements.elements_chain_ids,
    elements_chain_elements: elements.elements_chain_elements,
    $group_0: null,
    group_0: NO_GROUP,
    $group_1: null,
    group_1: NO_GROUP,
    $group_2: null,
    group_2: NO_GROUP,
    $group_3: null,
    group_3: NO_GROUP,
    $group_4: null,
    group_4: NO_GROUP,
    variables,
    // What conditions on static cohorts read. Where there is no person, no cohort lists it.
    $cohort_ids: person === null ? NO_COHORTS : (listedIn ?? null),
  };
  for (const { index, id, properties: known } of groups) {
    all[`$group_${index}`] = id;
    all[`group_${index}`] = { properties: known ?? {} };
  }
  return all;
}
