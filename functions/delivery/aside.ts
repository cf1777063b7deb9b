import type { PerProject } from './per-project.ts';
import type { Share } from './shares.ts';

/** Claims that others do not wait for, one at a time. */
export class Aside {
  readonly #reserved: PerProject;
  #running: Promise<void> | undefined;

  /** `reserved` counts the places that the claim under way may fill. */
  constructor(reserved: PerProject) {
    this.#reserved = reserved;
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
    this.#running = claim(shares).finally(() => {
      this.#reserve(shares, -1);
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
