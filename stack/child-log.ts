import { closeSync, copyFileSync, fstatSync, ftruncateSync, openSync, readSync } from 'node:fs';
import { StringDecoder } from 'node:string_decoder';
import { redactText } from '../telemetry/logger.ts';
import type { Report } from './problem.ts';
import { openLog } from './process.ts';

const ROTATE_BYTES = 20 * 1024 * 1024;
const LOOK_MILLISECONDS = 200;
const REPEAT_MILLISECONDS = 10_000;
const SHOWN_LEVELS = new Set(['warn', 'error', 'fatal']);

/**
 * The log of the API or the worker. The process writes into the file itself. With a pipe instead, a busy supervisor
 * would block the API, and a killed supervisor would lose the last lines. This class only reads the file and shows
 * warnings and errors on the terminal as sentences, each sentence at most every ten seconds.
 */
export class ChildLog {
  /** The file handle for the process. It appends, so that this class can truncate the file. */
  readonly handle: number;
  private readonly file: string;
  private readonly name: string;
  private readonly report: Report;
  private readonly reader: number;
  private readonly ticker: NodeJS.Timeout;
  private readonly decoder = new StringDecoder('utf8');
  private readonly buffer = Buffer.alloc(64 * 1024);
  private position: number;
  private rest = '';
  private readonly shown = new Map<string, { since: number; hidden: number }>();

  constructor(file: string, name: string, report: Report) {
    this.file = file;
    this.name = name;
    this.report = report;
    this.handle = openLog(file);
    this.reader = openSync(file, 'r');
    this.position = fstatSync(this.reader).size;
    this.ticker = setInterval(() => this.look(), LOOK_MILLISECONDS);
  }

  /** Reads the new lines. */
  look(): void {
    for (;;) {
      const length = readSync(this.reader, this.buffer, 0, this.buffer.length, this.position);
      if (length === 0) break;
      this.position += length;
      const lines = (this.rest + this.decoder.write(this.buffer.subarray(0, length))).split('\n');
      this.rest = lines.pop() as string;
      for (const line of lines) this.line(line);
    }
    if (this.position > ROTATE_BYTES) this.rotate();
  }

  /** Reads the rest and closes the file. Call it after the process has ended. */
  close(): void {
    clearInterval(this.ticker);
    this.look();
    if (this.rest) this.line(this.rest);
    closeSync(this.reader);
    closeSync(this.handle);
  }

  private line(line: string): void {
    const words = inWords(line);
    if (words !== undefined) this.show(words);
  }

  private rotate(): void {
    try {
      copyFileSync(this.file, `${this.file}.1`);
    } catch {
      // The disk is full. The old lines are not worth more space.
    }
    ftruncateSync(this.handle);
    this.position = 0;
  }

  private show({ sentence, details }: Words): void {
    const now = Date.now();
    const before = this.shown.get(sentence);
    if (before && now - before.since < REPEAT_MILLISECONDS) {
      before.hidden += 1;
      return;
    }
    if (this.shown.size > 200) this.shown.clear();
    this.shown.set(sentence, { since: now, hidden: 0 });
    const again = before && before.hidden > 0 ? ` (and ${before.hidden} times before)` : '';
    this.report(`[${this.name}] ${sentence}${details}${again}`);
  }
}

interface Words {
  sentence: string;
  /** What the sentence is about. Sentences that differ only in their details count as the same. */
  details: string;
}

/** A warning or an error as a short line for the terminal; undefined for a line that the terminal does not show. */
export function inWords(line: string): Words | undefined {
  let entry: {
    level?: string;
    msg?: string;
    err?: { message?: string };
    message?: string;
    exportId?: string;
  };
  try {
    entry = JSON.parse(line);
  } catch {
    // The line is not from the logger. It is the output of a crash.
    return line.trim() ? { sentence: redactText(line.trimEnd()), details: '' } : undefined;
  }
  if (typeof entry !== 'object' || entry === null || !SHOWN_LEVELS.has(entry.level ?? '')) return undefined;
  const cause = entry.err?.message;
  const text = [entry.msg, cause !== entry.msg ? cause : undefined].filter(Boolean).join(': ');
  const reason = entry.message ? `: ${entry.message.split('\n')[0]}` : '';
  return {
    sentence: `${entry.level}: ${redactText(text.split('\n')[0] as string) || '(no message)'}`,
    details: redactText(reason + (entry.exportId ? ` (batch export ${entry.exportId})` : '')),
  };
}
