import { type DestinationStream, type Logger, pino } from 'pino';

export type { Logger };

/** Names under which a secret may turn up in a logged object, at any of the first levels. */
const SECRET_NAMES = [
  'authorization',
  'personal_api_key',
  'api_key',
  'token',
  'secret',
  'password',
  'cookie',
  'secret_api_key',
  'aws_secret_access_key',
  'value',
  'apiKey',
  'TEMPORAL_API_KEY',
  'SLUICE_ENCRYPTION_KEYS',
];
const paths = SECRET_NAMES.flatMap((name) => [name, `*.${name}`, `*.*.${name}`]);
const KEY_TEXT = /(?<![A-Za-z0-9])(ph[xsa]_)[A-Za-z0-9]{6,}/g;
// Up to the last @: a password that somebody forgot to encode may contain one.
const URL_PASSWORD = /(\b[a-z][a-z0-9+.-]*:\/\/[^\s:/@"]*:)[^\s/"]+@/gi;

/** Takes keys and URL passwords out of free text (messages of errors, URLs of requests). */
export function redactText(text: string): string {
  return text.replace(KEY_TEXT, '$1[redacted]').replace(URL_PASSWORD, '$1[redacted]@');
}

export interface LoggerOptions {
  level: string;
  /** Name of the process: `api`, `worker`, `stack`. */
  name: string;
}

/** A structured logger, one JSON object a line. Secrets do not pass: by name of field, and by their look in texts. */
export function createLogger(options: LoggerOptions, destination?: DestinationStream): Logger {
  const settings = {
    level: options.level,
    base: { process: options.name },
    timestamp: pino.stdTimeFunctions.isoTime,
    redact: { paths, censor: '[redacted]' },
    formatters: { level: (label: string) => ({ level: label }) },
    hooks: { streamWrite: redactText },
  };
  return destination ? pino(settings, destination) : pino(settings);
}
