export const LOG_LEVELS = ['debug', 'info', 'warn', 'error'] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

export interface LogEntry {
  level: LogLevel;
  /** In ISO 8601. No two entries of an invocation have the same. */
  timestamp: string;
  message: string;
}

/** How many printed lines of one invocation are kept. */
export const MOST_PRINTED = 24;
const LONGEST = 10_000;
const CUT = '... (truncated)';

/** Shortens a message. A character that takes two units of UTF-16 is not split. */
export function shortened(message: string): string {
  if (message.length <= LONGEST) return message;
  const head = message.slice(0, LONGEST);
  return (head.isWellFormed() ? head : head.slice(0, -1)) + CUT;
}

/** A printed value: texts as they are, all else as JSON. */
export const printedText = (args: readonly unknown[]): string =>
  args.map((one) => (typeof one === 'string' ? one : (JSON.stringify(one) ?? 'null'))).join(', ');

/** The log of one event: of one invocation, or of one after the other. */
export class InvocationLog {
  readonly entries: LogEntry[] = [];
  readonly #clock: () => number;
  readonly #redact: (text: string) => string;
  #printed = 0;
  #last = 0;

  constructor(clock: () => number, redact: (text: string) => string) {
    this.#clock = clock;
    this.#redact = redact;
  }

  /** Begins the log of the next invocation. */
  begin(): void {
    this.#printed = 0;
  }

  add(level: LogLevel, message: string): void {
    this.#last = Math.max(this.#clock(), this.#last + 1);
    const timestamp = new Date(this.#last).toISOString();
    this.entries.push({ level, timestamp, message: shortened(this.#redact(message)) });
  }

  /** Adds a line that a program prints. `event` names its event. */
  print(line: string, event: string): void {
    this.#printed += 1;
    if (this.#printed <= MOST_PRINTED) this.add('info', line);
    else if (this.#printed === MOST_PRINTED + 1) {
      this.add(
        'warn',
        `Function exceeded maximum log entries. No more logs will be collected. Event: ${event}`,
      );
    }
  }
}
