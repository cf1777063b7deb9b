/** After a transaction that changed persons, so many further ones expect others to change persons too. */
const LIVELY = 16;

type Keys = Pick<ReadonlySet<string>, 'has' | 'size' | 'keys'>;

const NONE: Keys = new Set();

function overlap(one: Keys, other: Keys): boolean {
  const [few, many] = one.size < other.size ? [one, other] : [other, one];
  for (const key of few.keys()) if (many.has(key)) return true;
  return false;
}

/** The turn of one transaction among those that mention the same distinct_ids. */
export class PersonTurn {
  /** The distinct_ids that the transaction mentions; later, only those that it changes. */
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

  /** Says which distinct_ids the transaction is going to change. No others will follow. */
  settle(keys: Keys): void {
    this.keys = keys;
    this.isSettled = true;
    this.#settle();
  }

  /** The transaction has ended. */
  end(): void {
    this.settle(NONE);
    this.#end();
  }
}

/**
 * Lets a transaction wait for the earlier ones of this process that change its persons. Without waiting, it would read
 * the persons, apply the rules, wait for locks, and then have to repeat all of it. This only saves work: the
 * transaction notices changes by other processes in any case.
 *
 * Transactions never wait for each other in a circle: one waits only for those that began before it, and it holds no
 * lock on persons or groups while it waits.
 */
export class PersonTurns {
  readonly #running = new Set<PersonTurn>();
  #lively = 0;

  /** Whether transactions have changed persons recently. */
  get isLively(): boolean {
    return this.#lively > 0;
  }

  /** Begins the turn of a transaction that mentions these distinct_ids. The caller must end it in any case. */
  async begin(keys: Keys): Promise<{ turn: PersonTurn; hasWaited: boolean }> {
    const before = [...this.#running];
    const turn = new PersonTurn(keys);
    this.#running.add(turn);
    const isLively = this.#lively > 0;
    if (isLively) this.#lively -= 1;
    let hasWaited = false;
    for (const other of before) {
      // If persons rarely change, it is not worth waiting until it is known which ones do.
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
