import { LRUCache } from 'lru-cache';
import {
  addGroupType,
  type GroupValues,
  MOST_GROUP_TYPES,
  readGroupTypes,
  writeGroups,
} from '../../db/group-writes.ts';
import { groupId } from '../../db/person-ids.ts';
import type { Transaction } from '../../db/pool.ts';
import {
  GROUP_IDENTIFY,
  type GroupUpdate,
  groupUpdateOf,
  type Membership,
  MOST_GROUP_PROPERTIES,
  membershipsOf,
} from '../persons/groups.ts';
import type { PersonNotice } from '../persons/notice.ts';
import { put } from '../persons/update.ts';
import { type PendingEvent, propertiesText } from './event-row.ts';

type Types = ReadonlyMap<string, number>;

const NONE: Types = new Map();
/** How many projects are remembered. */
const REMEMBERED = 10_000;

/** The group types of projects. A type is never changed or removed, so what was read once stays true. */
export class GroupTypes {
  readonly #known = new LRUCache<number, Types>({ max: REMEMBERED });

  /**
   * Finds the indexes of the group types that events mention, for each project. A new type gets an index while the
   * project has one left. The caller calls `committed` after the commit.
   */
  async resolve(client: Transaction, wanted: ReadonlyMap<number, ReadonlySet<string>>) {
    const resolved = new Map<number, Types>();
    const seen: [number, Types][] = [];
    // Projects come in a fixed order, because a new type makes other transactions wait for this one.
    for (const projectId of [...wanted.keys()].sort((a, b) => a - b)) {
      let types = this.#known.get(projectId) ?? NONE;
      const missing = () => [...(wanted.get(projectId) ?? [])].filter((type) => !types.has(type));
      if (types.size < MOST_GROUP_TYPES && missing().length > 0) {
        types = await readGroupTypes(client, projectId);
        for (
          let next = missing()[0];
          next !== undefined && types.size < MOST_GROUP_TYPES;
          next = missing()[0]
        ) {
          await addGroupType(client, projectId, next);
          types = await readGroupTypes(client, projectId);
        }
        seen.push([projectId, types]);
      }
      resolved.set(projectId, types);
    }
    const committed = () => {
      for (const [projectId, types] of seen) this.#known.set(projectId, types);
    };
    return { types: resolved, committed };
  }
}

type Notify = (event: PendingEvent, notice: PersonNotice) => void;

interface Mentions {
  pending: PendingEvent;
  memberships: readonly Membership[];
  update: GroupUpdate | undefined;
}

/** All updates of one group in the transaction, joined. */
interface Update {
  values: Omit<GroupValues, 'text'>;
  set: Record<string, unknown>;
  last: PendingEvent;
}

/** The groups of a transaction's events. */
interface GroupsOfEvents {
  /** The keys of the event's groups, by the index of their type. */
  keysOf(event: PendingEvent): readonly (string | null)[] | undefined;
  /** Writes the properties that events set on groups. `stamp` is the inserted_at of the transaction. */
  write(client: Transaction, stamp: string): Promise<void>;
  /** Call it after the commit. */
  committed(): void;
}

const NOTHING: GroupsOfEvents = {
  keysOf: () => undefined,
  write: async () => undefined,
  committed: () => undefined,
};

function mentionsOf(events: readonly PendingEvent[], notify: Notify): Mentions[] {
  const mentions: Mentions[] = [];
  for (const pending of events) {
    const { event } = pending;
    if (event.properties.$groups === undefined && !GROUP_IDENTIFY.has(event.event)) continue;
    const notice = (one: PersonNotice) => notify(pending, one);
    mentions.push({
      pending,
      memberships: membershipsOf(event, notice),
      update: groupUpdateOf(event, notice),
    });
  }
  return mentions;
}

export async function resolveGroups(
  client: Transaction,
  events: readonly PendingEvent[],
  groupTypes: GroupTypes,
  notify: Notify,
): Promise<GroupsOfEvents> {
  const mentions = mentionsOf(events, notify);
  if (mentions.length === 0) return NOTHING;
  const wanted = new Map<number, Set<string>>();
  for (const { pending, memberships, update } of mentions) {
    const types = wanted.get(pending.projectId) ?? new Set();
    wanted.set(pending.projectId, types);
    for (const { type } of memberships) types.add(type);
    if (update) types.add(update.type);
  }
  const { types, committed } = await groupTypes.resolve(client, wanted);
  const keys = new Map<PendingEvent, (string | null)[]>();
  const updates = new Map<string, Update>();

  for (const { pending, memberships, update } of mentions) {
    const indexOf = (type: string) => {
      const index = types.get(pending.projectId)?.get(type);
      if (index === undefined) {
        const detail = { event: pending.event.event, group_type: type.slice(0, 100).toWellFormed() };
        notify(pending, { reason: 'group_type_limit_reached', detail });
      }
      return index;
    };
    for (const { type, key } of memberships) {
      const index = indexOf(type);
      if (index === undefined) continue;
      const own = keys.get(pending) ?? [null, null, null, null, null];
      own[index] = key;
      keys.set(pending, own);
    }
    const index = update && indexOf(update.type);
    if (index !== undefined) join(updates, pending, update as GroupUpdate, index);
  }

  return {
    keysOf: (event) => keys.get(event),
    committed,
    async write(transaction, stamp) {
      const tooLarge = ({ last, values }: Update) =>
        notify(last, {
          reason: 'group_properties_too_large',
          detail: { group_key: values.key.slice(0, 100).toWellFormed(), limit_bytes: MOST_GROUP_PROPERTIES },
        });
      const all = [...updates.values()].map((update) => ({
        update,
        row: { ...update.values, text: propertiesText(update.set) },
      }));
      const fits = (one: (typeof all)[number]) => Buffer.byteLength(one.row.text) <= MOST_GROUP_PROPERTIES;
      const written = all.filter(fits);
      for (const { update } of all.filter((one) => !fits(one))) tooLarge(update);
      if (written.length === 0) return;
      const refused = new Set(
        await writeGroups(
          transaction,
          written.map((one) => one.row),
          stamp,
          MOST_GROUP_PROPERTIES,
        ),
      );
      for (const { update, row } of written) if (refused.has(row)) tooLarge(update);
    },
  };
}

function join(updates: Map<string, Update>, pending: PendingEvent, update: GroupUpdate, index: number): void {
  const { projectId } = pending;
  const name = `${projectId}:${index}:${update.key}`;
  const known = updates.get(name);
  if (known) {
    for (const name of Object.keys(update.set)) put(known.set, name, update.set[name]);
    known.last = pending;
    return;
  }
  const { key, at } = update;
  const values = { projectId, groupTypeIndex: index, key, id: groupId(projectId, index, key), createdAt: at };
  updates.set(name, { values, set: { ...update.set }, last: pending });
}
