import type { MetricKind } from '../rows/counts.ts';
import type { LogLevel } from '../rules/logs.ts';

/** What is to be told about the runs of some events. It can be sent between threads. */
export interface Told {
  counts: [functionId: string, kind: MetricKind, name: string, count: number][];
  logs: { functionId: string; uuid: string; level: LogLevel; message: string }[];
  /** What runs have cost, by function; see functions/rules/watcher.ts. */
  costs: [functionId: string, cost: number][];
}

/** Lines that one tally keeps. The others are only counted. */
const MOST_LINES = 100;

/** Counts what happens to events. */
export class Tally {
  readonly #counts = new Map<string, Told['counts'][number]>();
  readonly #costs = new Map<string, number>();
  readonly #logs: Told['logs'] = [];

  /** Begins notes about one event. They count when they are committed: a program may have to run again elsewhere. */
  event(uuid: string): Notes {
    return new Notes(uuid, (told) => this.add(told));
  }

  /** Adds what another tally says. */
  add({ counts, logs, costs }: Told): void {
    for (const one of counts) this.#count(...one);
    for (const one of costs) this.#cost(...one);
    for (const line of logs) if (this.#logs.length < MOST_LINES) this.#logs.push(line);
  }

  get told(): Told {
    return { counts: [...this.#counts.values()], logs: this.#logs, costs: [...this.#costs] };
  }

  #count(functionId: string, kind: MetricKind, name: string, count: number): void {
    const key = `${functionId}:${name}`;
    const known = this.#counts.get(key);
    if (known) known[3] += count;
    else this.#counts.set(key, [functionId, kind, name, count]);
  }

  #cost(functionId: string, cost: number): void {
    this.#costs.set(functionId, (this.#costs.get(functionId) ?? 0) + cost);
  }
}

/** What happens to one event. */
export class Notes {
  readonly #uuid: string;
  readonly #commit: (told: Told) => void;
  readonly #told: Told = { counts: [], logs: [], costs: [] };

  constructor(uuid: string, commit: (told: Told) => void) {
    this.#uuid = uuid;
    this.#commit = commit;
  }

  count(functionId: string, kind: MetricKind, name: string): void {
    this.#told.counts.push([functionId, kind, name, 1]);
  }

  fail(functionId: string, name: string, message: string): void {
    this.count(functionId, 'failure', name);
    this.#told.logs.push({ functionId, uuid: this.#uuid, level: 'error', message });
  }

  print(functionId: string, message: string): void {
    this.#told.logs.push({ functionId, uuid: this.#uuid, level: 'info', message });
  }

  cost(functionId: string, cost: number): void {
    this.#told.costs.push([functionId, cost]);
  }

  commit(): void {
    this.#commit(this.#told);
  }
}
