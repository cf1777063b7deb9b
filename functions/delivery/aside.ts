import { setTimeout as pause } from 'node:timers/promises';
import type { PerProject } from './per-project.ts';
import type { Share } from './shares.ts';

/** Claims that others do not wait for, one at a time. */
export class Aside {
  readonly #reserved: PerProject;
  readonly #distance: number;
  #running: Promise<void> | undefined;

  /**
   * `reserved` counts the places that the claim under way may fill. The next one begins so many milliseconds after its end
   * at the earliest.
   */
  constructor(reserved: PerProject, distance = 0) {
    this.#reserved = reserved;
    this.#distance = distance;
  }

  get isBusy(): boolean {
    return this.#running !== undefined;
  }

  begin(
    shares: readonly Share[],
    claim: (shares: readonly Share[]) => Promise<void>,
    ended: () => void,
  ): void {
    this.#reserve(shares, 1);
    this.#running = claim(shares)
      .finally(() => this.#reserve(shares, -1))
      .then(async () => {
        if (this.#distance > 0) await pause(this.#distance);
      })
      .finally(() => {
        this.#running = undefined;
        ended();
      });
  }

  /** Waits for the claim under way. */
  async idle(): Promise<void> {
    await this.#running;
  }

  #reserve(shares: readonly Share[], sign: 1 | -1): void {
    for (const { line, count } of shares) this.#reserved.add(line.projectId, sign * count);
  }
}
