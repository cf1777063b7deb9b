import { closeSync, fstatSync, renameSync, writeSync } from 'node:fs';
import { redactText } from '../telemetry/logger.ts';
import type { Report } from './problem.ts';
import { openLog } from './process.ts';

const ROTATE_BYTES = 20 * 1024 * 1024;
const REPEAT_MILLISECONDS = 10_000;
const SHOWN_LEVELS = new Set(['warn', 'error', 'fatal']);

/**
 * The log of the API or the worker: everything goes to the file as it came; warnings and errors are also shown on
 * the terminal, in words, the same sentence at most every ten seconds.
 */
export class ChildLog {
  readonly file: string;
  private readonly name: string;
  private readonly report: Report;
  private handle: number;
  private size: number;
  private rest = '';
  private readonly shown = new Map<string, { since: number; hidden: number }>();

  constructor(file: string, name: string, report: Report) {
    this.file = file;
    this.name = name;
    this.report = report;
    this.handle = openLog(file);
    this.size = fstatSync(this.handle).size;
  }

  /** Takes a piece of the child's output, which may end in the middle of a line. */
  write(text: string): void {
    const lines = (this.rest + text).split('\n');
    this.rest = lines.pop() as string;
    for (const line of lines) this.line(line);
  }

  close(): void {
    if (this.rest) this.line(this.rest);
    closeSync(this.handle);
  }

  private line(line: string): void {
    if (this.size > ROTATE_BYTES) this.rotate();
    try {
      this.size += writeSync(this.handle, `${line}\n`);
    } catch {
      // A full disk must not end the supervisor; Postgres says what matters about it.
    }
    const sentence = inWords(line);
    if (sentence !== undefined) this.show(sentence);
  }

  private rotate(): void {
    closeSync(this.handle);
    renameSync(this.file, `${this.file}.1`);
    this.handle = openLog(this.file);
    this.size = 0;
  }

  private show(sentence: string): void {
    const now = Date.now();
    const before = this.shown.get(sentence);
    if (before && now - before.since < REPEAT_MILLISECONDS) {
      before.hidden += 1;
      return;
    }
    if (this.shown.size > 200) this.shown.clear();
    this.shown.set(sentence, { since: now, hidden: 0 });
    const again = before && before.hidden > 0 ? ` (and ${before.hidden} times before)` : '';
    this.report(`[${this.name}] ${sentence}${again}`);
  }
}

/** A warning or an error as a short line for people; undefined for what need not be shown. */
export function inWords(line: string): string | undefined {
  let entry: { level?: string; msg?: string; err?: { message?: string } };
  try {
    entry = JSON.parse(line);
  } catch {
    // Not from the logger: the last words of a crash.
    return line.trim() ? redactText(line.trimEnd()) : undefined;
  }
  if (typeof entry !== 'object' || entry === null || !SHOWN_LEVELS.has(entry.level ?? '')) return undefined;
  const cause = entry.err?.message;
  const text = [entry.msg, cause !== entry.msg ? cause : undefined].filter(Boolean).join(': ');
  return `${entry.level}: ${redactText(text.split('\n')[0] as string) || '(no message)'}`;
}
