/** A thing that can be in a crowd: it keeps its place in it. */
export interface Member {
  place: number;
}

/**
 * Things that come and go thousands of times a second, in no order. A Set would make a new table for itself after every few
 * removals. An old table still names what was in it, and a dead one that has grown old keeps all of that until the next full
 * garbage collection: requests, their answers, and the tables after it.
 */
export class Crowd<T extends Member> {
  readonly #members: T[] = [];

  add(member: T): void {
    member.place = this.#members.length;
    this.#members.push(member);
  }

  /** Does nothing if it has gone already. */
  remove(member: T): void {
    if (this.#members[member.place] !== member) return;
    const last = this.#members.pop() as T;
    if (last === member) return;
    this.#members[member.place] = last;
    last.place = member.place;
  }

  /** All of them, as they are now. */
  all(): T[] {
    return this.#members.slice();
  }
}
