import type { Metric, Registry } from 'prom-client';

/** The durations of one combination of labels. */
export interface Durations {
  observe(seconds: number): void;
}

interface Series extends Durations {
  labels: Record<string, string>;
  counts: Float64Array;
  sum: number;
}

interface Value {
  metricName: string;
  labels: Record<string, string | number>;
  value: number;
}

/**
 * A histogram whose callers look up a series once, so that each value costs only an addition. The histogram of
 * prom-client builds a text of all labels for each value, which is too slow for every request.
 */
export class DurationHistogram {
  readonly type = 'histogram';
  readonly name: string;
  readonly help: string;
  readonly aggregator = 'sum';
  readonly #bounds: readonly number[];
  #series = new Map<string, Series>();

  constructor(options: { name: string; help: string; buckets: readonly number[]; registry: Registry }) {
    this.name = options.name;
    this.help = options.help;
    this.#bounds = options.buckets;
    options.registry.registerMetric(this as unknown as Metric);
  }

  /** The series of these labels. The same labels always give the same series. */
  series(labels: Record<string, string>): Durations {
    const key = Object.values(labels).join('\n');
    let series = this.#series.get(key);
    if (!series) {
      const bounds = this.#bounds;
      const counts = new Float64Array(bounds.length + 1);
      const made: Series = {
        labels,
        counts,
        sum: 0,
        observe(seconds) {
          let bucket = 0;
          while (bucket < bounds.length && seconds > (bounds[bucket] as number)) bucket += 1;
          (counts[bucket] as number) += 1;
          made.sum += seconds;
        },
      };
      series = made;
      this.#series.set(key, series);
    }
    return series;
  }

  reset(): void {
    this.#series = new Map();
  }

  /** The values in the form that a registry of prom-client reads. */
  async get() {
    const values = [...this.#series.values()].flatMap(({ labels, counts, sum }) => {
      // A series without values does not appear.
      if (counts.every((count) => count === 0)) return [];
      let below = 0;
      const buckets = [...counts].map((count, index): Value => {
        below += count;
        return {
          metricName: `${this.name}_bucket`,
          labels: { le: this.#bounds[index] ?? '+Inf', ...labels },
          value: below,
        };
      });
      return [
        ...buckets,
        { metricName: `${this.name}_sum`, labels, value: sum },
        { metricName: `${this.name}_count`, labels, value: below },
      ];
    });
    return { name: this.name, help: this.help, type: this.type, aggregator: this.aggregator, values };
  }
}
