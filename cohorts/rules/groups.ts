// An older form of the filters of cohorts, which scripts still write.

import { refuse } from '../../refusals.ts';
import { isObject } from '../../values/json-object.ts';

type Fields = Record<string, unknown>;

const wrong = (message: string, code = 'invalid_input') => refuse.invalid('groups', message, { code });

const conditionOf = (property: unknown): unknown =>
  isObject(property) && property.type === undefined ? { ...property, type: 'person' } : property;

/** The conditions of a group: a list of them, values by the names of properties, or a tree as in `filters`. */
function nodeOf(group: unknown, place: string): unknown {
  if (!isObject(group)) throw wrong(`${place} must be an object.`);
  if (['action_id', 'event_id'].some((name) => group[name] !== undefined && group[name] !== null)) {
    throw wrong(`${place}: conditions on what persons did are not supported.`, 'behavioral_cohort_found');
  }
  const { properties = [] } = group;
  if (Array.isArray(properties)) return { type: 'AND', values: properties.map(conditionOf) };
  if (!isObject(properties)) throw wrong(`${place}.properties must be a list or an object.`);
  if (Array.isArray(properties.values)) return properties;
  return {
    type: 'AND',
    values: Object.entries(properties).map(([key, value]) => ({ key, value, type: 'person' })),
  };
}

/** Writes groups as filters: whoever fulfils one of them is in the cohort. */
export function filtersOfGroups(groups: unknown): Fields {
  if (!Array.isArray(groups)) throw wrong('This must be a list of groups.');
  const values = groups.map((group, index) => nodeOf(group, `groups[${index}]`));
  return { properties: { type: 'OR', values } };
}
