import { addGroupType, MOST_GROUP_TYPES, readGroupTypes } from '../../db/group-writes.ts';
import type { Transaction } from '../../db/pool.ts';

type Types = ReadonlyMap<string, number>;

const NONE: Types = new Map();
/** As many projects are kept at hand. */
const REMEMBERED = 10_000;

/** The group types of projects. They are never changed or taken away, so what was seen once stays true. */
export class GroupTypes {
  readonly #known = new Map<number, Types>();

  /**
   * The indexes of the types that the projects' events name, made up for types that are new while there is room.
   * `committed` must be called when the transaction was.
   */
  async resolve(client: Transaction, wanted: ReadonlyMap<number, ReadonlySet<string>>) {
    const resolved = new Map<number, Types>();
    const seen: [number, Types][] = [];
    // In their order, as a new type makes others wait for this transaction.
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
      if (this.#known.size + seen.length > REMEMBERED) this.#known.clear();
      for (const [projectId, types] of seen) this.#known.set(projectId, types);
    };
    return { types: resolved, committed };
  }
}
