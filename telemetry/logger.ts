import { type DestinationStream, type Logger, pino } from 'pino';

export type { Logger };

/** Fields that may contain a secret. The logger redacts them in the first three levels of a logged object. */
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
// Matches up to the last @, because a password that is not URL-encoded may contain one.
const URL_PASSWORD = /(\b[a-z][a-z0-9+.-]*:\/\/[^\s:/@"]*:)[^\s/"]+@/gi;

/** Redacts keys and URL passwords in free text, such as error messages and request URLs. */
export function redactText(text: string): string {
  return text.replace(KEY_TEXT, '$1[redacted]').replace(URL_PASSWORD, '$1[redacted]@');
}

export interface LoggerOptions {
  level: string;
  /** Name of the process: `api`, `worker`, `stack`. */
  name: string;
}

/** Creates a structured logger that writes one JSON object per line. It redacts secret fields and keys inside texts. */
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
