import { Counter, type Registry } from '../../telemetry/metrics.ts';

export type Result = 'unchanged' | 'changed' | 'dropped' | 'dropped_on_error' | 'refused';

export interface TransformMetrics {
  events: Counter<'result'>;
  seconds: Counter<'thread'>;
}

export function createTransformMetrics(registry: Registry | undefined): TransformMetrics {
  const registers = registry ? [registry] : [];
  return {
    events: new Counter({
      name: 'sluice_transformed_events_total',
      help:
        'Events of projects with transformations, by what became of them: unchanged, changed, dropped, dropped_on_error, ' +
        'refused (with their whole request).',
      labelNames: ['result'],
      registers,
    }),
    seconds: new Counter({
      name: 'sluice_transformation_seconds_total',
      help: 'Time of transformations: in the main thread, or in other threads because they take long.',
      labelNames: ['thread'],
      registers,
    }),
  };
}
