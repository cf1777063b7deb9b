import { Counter, type Registry } from '../telemetry/metrics.ts';
import type { ProjectFlags } from './cache/definitions.ts';
import type { CompiledFlag } from './engine/compile.ts';

/** So many combinations of project, flag and value have a series of their own. The others share one. */
const MOST_SERIES = 5_000;
const OTHER = { project: 'other', flag: 'other', value: 'other' };

/** Counts what flags were told to be. */
export interface Told {
  /** A flag was replaced by a newer version of it. */
  retire(projectId: number, flag: CompiledFlag): void;
}

/**
 * Adds a metric of what flags were told to be. Each outcome counts how often it was told, which costs a request almost
 * nothing; the metric adds this up when it is read.
 */
export function createTold(
  registry: Registry | undefined,
  projects: () => Iterable<ProjectFlags>,
  mostSeries = MOST_SERIES,
): Told {
  const known = new Set<string>();
  const counter = new Counter({
    name: 'sluice_flag_evaluations_total',
    help: 'How often feature flags were told, by project, flag and value (true, false, failed, or a variant)',
    labelNames: ['project', 'flag', 'value'],
    registers: registry ? [registry] : [],
    collect() {
      for (const { projectId, set } of projects()) {
        for (const flag of set.byId.values()) add(projectId, flag);
      }
    },
  });

  function add(projectId: number, { definition, outcomes }: CompiledFlag): void {
    for (const outcome of outcomes.all()) {
      if (outcome.told === 0) continue;
      const { failed, enabled, variant } = outcome;
      const value = failed ? 'failed' : String(enabled ? (variant ?? true) : false);
      const labels = { project: String(projectId), flag: definition.key, value };
      const name = `${projectId} ${definition.key} ${value}`;
      const isKnown = known.has(name) || known.size < mostSeries;
      if (isKnown) known.add(name);
      counter.inc(isKnown ? labels : OTHER, outcome.told);
      outcome.told = 0;
    }
  }
  return { retire: add };
}
