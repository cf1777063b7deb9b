import type { Logger as TemporalLogger } from '@temporalio/worker';
import type { Logger } from '../telemetry/logger.ts';
import { EXPORT_RUN } from '../workflows/names.ts';

const LEVELS = { TRACE: 'trace', DEBUG: 'debug', INFO: 'info', WARN: 'warn', ERROR: 'error' } as const;

/** Writes the messages of Temporal's SDK to the log. Its debug and info messages become one level less important. */
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
  // The workers for heavy activities have no workflows on purpose.
  if (message.startsWith('No workflows registered')) return false;
  // The log already has the failed attempt, with more details.
  return !(message === 'Workflow failed' && meta?.workflowType === EXPORT_RUN);
}
