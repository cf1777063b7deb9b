import type { Logger as TemporalLogger } from '@temporalio/worker';
import type { Logger } from '../telemetry/logger.ts';
import { EXPORT_RUN } from '../workflows/names.ts';

const LEVELS = { TRACE: 'trace', DEBUG: 'debug', INFO: 'info', WARN: 'warn', ERROR: 'error' } as const;

/** Temporal's own messages in our log. Its notices are details to us. */
export function temporalLogger(logger: Logger): TemporalLogger {
  const write = (
    level: (typeof LEVELS)[keyof typeof LEVELS],
    message: string,
    meta?: Record<string, unknown>,
  ) => logger[level]({ ...meta }, message);
  return {
    log: (level, message, meta) => write(LEVELS[level], message, meta),
    trace: (message, meta) => write('trace', message, meta),
    debug: (message, meta) => write('trace', message, meta),
    info: (message, meta) => write('debug', message, meta),
    warn: (message, meta) => write(isNews(message, meta) ? 'warn' : 'debug', message, meta),
    error: (message, meta) => write('error', message, meta),
  };
}

function isNews(message: string, meta: Record<string, unknown> | undefined): boolean {
  // One of our workers has activities only, and means it.
  if (message.startsWith('No workflows registered')) return false;
  // The attempt that failed was told of, with what it is about.
  return !(message === 'Workflow failed' && meta?.workflowType === EXPORT_RUN);
}
