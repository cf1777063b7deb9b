import { personProperty } from '../properties/index.ts';
import type { Subject } from './engine/subject.ts';

/** Somebody as they are stored, without what a request would say of them. */
export interface StoredPerson {
  distinctId: string;
  /** Undefined: there is no such person. */
  properties: Readonly<Record<string, unknown>> | undefined;
  staticCohorts: ReadonlySet<number>;
  /** By which ids they are counted to rollouts, by the keys of flags. */
  hashKeys: ReadonlyMap<string, string>;
  groups?: ReadonlyMap<number, { key: string; properties: Readonly<Record<string, unknown>> | undefined }>;
  deviceId?: string;
}

/** Shows a stored person to flags. */
export function storedSubject(person: StoredPerson): Subject {
  const { distinctId, properties = {}, staticCohorts, hashKeys, groups, deviceId = '' } = person;
  const own = (key: string) => (Object.hasOwn(properties, key) ? properties[key] : undefined);
  return {
    distinctId,
    deviceId,
    property(key) {
      return key === 'distinct_id' ? distinctId : personProperty(own, key);
    },
    group: (index) => groups?.get(index)?.key,
    groupProperty(index, key) {
      const group = groups?.get(index);
      if (group?.properties && Object.hasOwn(group.properties, key)) return group.properties[key];
      return key === '$group_key' ? group?.key : undefined;
    },
    inStatic: (cohortId) => staticCohorts.has(cohortId),
    hashKey: (flagKey) => hashKeys.get(flagKey),
  };
}
