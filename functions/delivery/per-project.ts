/** A count of something, by project and of all together. */
export class PerProject {
  readonly #of = new Map<number, number>();
  all = 0;

  of(projectId: number): number {
    return this.#of.get(projectId) ?? 0;
  }

  add(projectId: number, by: number): void {
    this.all += by;
    const count = this.of(projectId) + by;
    if (count === 0) this.#of.delete(projectId);
    else this.#of.set(projectId, count);
  }
}
