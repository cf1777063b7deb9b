/** As many transactions expect others to change persons after one did. */
const LIVELY = 16;

type Keys = Pick<ReadonlySet<string>, 'has' | 'size' | 'keys'>;

const NONE: Keys = new Set();

function overlap(one: Keys, other: Keys): boolean {
  const [few, many] = one.size < other.size ? [one, other] : [other, one];
  for (const key of few.keys()) if (many.has(key)) return true;
  return false;
}

/** A transaction's part in the order of those that name the same distinct_ids. */
export class PersonTurn {
  /** All that it names; what it changes, once that is known. */
  keys: Keys;
  isSettled = false;
  readonly settled: Promise<void>;
  readonly ended: Promise<void>;
  #settle!: () => void;
  #end!: () => void;

  constructor(keys: Keys) {
    this.keys = keys;
    this.settled = new Promise((resolve) => {
      this.#settle = resolve;
    });
    this.ended = new Promise((resolve) => {
      this.#end = resolve;
    });
  }

  /** These, and no others, are going to change. */
  settle(keys: Keys): void {
    this.keys = keys;
    this.isSettled = true;
    this.#settle();
  }

  /** Nothing more changes. */
  end(): void {
    this.settle(NONE);
    this.#end();
  }
}

/**
 * Lets a transaction wait for those before it, of this process, that change its persons. Without that it would read
 * them, apply the rules, wait for their locks, and have to do all of it again. Only saves work: what is changed by
 * others is found out all the same.
 *
 * Nobody waits in a circle: who begins waits for those that began before, and has locked nothing of persons or groups.
 */
export class PersonTurns {
  readonly #running = new Set<PersonTurn>();
  #lively = 0;

  /** Whether persons change at the moment. */
  get isLively(): boolean {
    return this.#lively > 0;
  }

  /** Of a transaction that names these distinct_ids. Must be ended, whatever becomes of it. */
  async begin(keys: Keys): Promise<{ turn: PersonTurn; hasWaited: boolean }> {
    const before = [...this.#running];
    const turn = new PersonTurn(keys);
    this.#running.add(turn);
    const isLively = this.#lively > 0;
    if (isLively) this.#lively -= 1;
    let hasWaited = false;
    for (const other of before) {
      // Where hardly anybody changes, it is not worth waiting to know what.
      if (!(isLively || other.isSettled) || !overlap(other.keys, keys)) continue;
      hasWaited = true;
      await other.settled;
      if (overlap(other.keys, keys)) await other.ended;
    }
    return { turn, hasWaited };
  }

  settle(turn: PersonTurn, changed: Keys): void {
    turn.settle(changed);
    if (changed.size > 0) this.#lively = LIVELY;
  }

  end(turn: PersonTurn): void {
    this.#running.delete(turn);
    turn.end();
  }
}
