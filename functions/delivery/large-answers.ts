import { PerProject } from './per-project.ts';

/** How many large answers a project may have in memory, and all projects together. */
const MOST = { ofProject: 8, ofAll: 32 };

/** The right to have a large answer in memory. */
export interface Place {
  /** Resolves when it may be read. */
  granted: Promise<void>;
  /** It is no longer needed. */
  leave(): void;
}

interface Waiting {
  projectId: number;
  grant(): void;
}

/**
 * Lets only some large answers into memory: programs go on with them, and what is read of others stays with their senders.
 * Projects with the fewest come first.
 */
export class LargeAnswers {
  readonly #held = new PerProject();
  readonly #most: typeof MOST;
  #waiting: Waiting[] = [];

  constructor(most = MOST) {
    this.#most = most;
  }

  enter(projectId: number): Place {
    const { promise: granted, resolve } = Promise.withResolvers<void>();
    let isHeld = false;
    const one: Waiting = {
      projectId,
      grant: () => {
        isHeld = true;
        this.#held.add(projectId, 1);
        resolve();
      },
    };
    this.#waiting.push(one);
    this.#grant();
    return {
      granted,
      leave: () => {
        this.#waiting = this.#waiting.filter((other) => other !== one);
        if (isHeld) this.#held.add(projectId, -1);
        isHeld = false;
        this.#grant();
      },
    };
  }

  #grant(): void {
    while (this.#held.all < this.#most.ofAll) {
      const next = this.#waiting
        .filter(({ projectId }) => this.#held.of(projectId) < this.#most.ofProject)
        .reduce<Waiting | undefined>(
          (first, one) =>
            first && this.#held.of(first.projectId) <= this.#held.of(one.projectId) ? first : one,
          undefined,
        );
      if (!next) return;
      this.#waiting = this.#waiting.filter((other) => other !== next);
      next.grant();
    }
  }
}
