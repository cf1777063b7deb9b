import { Counter, type Registry } from '../../telemetry/metrics.ts';

export interface DispatchMetrics {
  events: Counter;
  invocations: Counter;
  missing: Counter;
}

export function createDispatchMetrics(registry: Registry | undefined): DispatchMetrics {
  const registers = registry ? [registry] : [];
  const counter = (name: string, help: string) => new Counter({ name, help, registers });
  return {
    events: counter('sluice_function_events_total', 'Events that functions have seen.'),
    invocations: counter('sluice_function_invocations_total', 'Invocations that events have led to.'),
    missing: counter(
      'sluice_function_events_missing_total',
      'Events that were deleted before functions could see them.',
    ),
  };
}
