import { createHash } from 'node:crypto';
import { bindDestination } from '../../destinations/bind.ts';
import type { RawConfig } from '../../destinations/config.ts';
import type { Delivered, Run, RunControl, Surroundings } from '../../destinations/destination.ts';
import type { Manifest } from '../../destinations/file-run.ts';
import type { EncodedFile } from '../../formats/output-files.ts';
import { modelOf } from '../../models/index.ts';
import { copyBytes, EVENT_COLUMNS, pieces, type SampleEvent } from './sample.ts';

export const RUN: Run = {
  exportId: '01990000-aaaa-7000-8000-000000000001',
  runId: 'run-1',
  projectId: 7,
  model: 'events',
  interval: { start: Date.parse('2026-01-31T12:00:00Z'), end: Date.parse('2026-01-31T13:00:00Z') },
};

/** Repeats at once: tests do not wait. */
export const HASTE = { attempts: 4, delay: () => 1 };

export interface DeliverOptions extends RunControl {
  type: string;
  config: RawConfig;
  surroundings: Surroundings;
  run?: Run;
  events: readonly SampleEvent[];
  /** For files: how many events each gets. */
  perFile?: number;
  /** The source throws this after so many bytes. */
  breakAfter?: { bytes: number; error: Error };
  /** Called before each piece of the source; may wait, or cancel. */
  onPiece?(index: number): void | Promise<void>;
  pieceBytes?: number;
}

export const lineOf = (event: SampleEvent) => `${JSON.stringify({ uuid: event.uuid, event: event.event })}\n`;

async function* sourceOf(options: DeliverOptions, bytes: Buffer): AsyncGenerator<Buffer> {
  let sent = 0;
  let index = 0;
  for await (const piece of pieces(bytes, options.pieceBytes)) {
    await options.onPiece?.(index);
    index += 1;
    if (options.breakAfter && sent >= options.breakAfter.bytes) throw options.breakAfter.error;
    sent += piece.length;
    yield piece;
  }
  if (options.breakAfter) throw options.breakAfter.error;
}

/** Takes events to a destination of either kind, as a run does. */
export async function deliver(options: DeliverOptions): Promise<Manifest | Delivered> {
  const { type, config, surroundings, run = RUN, events, signal, fence, onWait, wrote, onPublish } = options;
  const destination = bindDestination({ type, config }, surroundings);
  const work: RunControl = { signal, fence, onWait, wrote, onPublish };
  if (destination.kind === 'rows') {
    const bytes = copyBytes(EVENT_COLUMNS, events);
    return destination.deliver({
      run,
      columns: EVENT_COLUMNS,
      rules: modelOf('events').table,
      read: () => sourceOf(options, bytes),
      ...work,
    });
  }
  const opened = await destination.open(run, work);
  try {
    const files: EncodedFile[] = [];
    const perFile = options.perFile ?? Math.max(1, events.length);
    for (let from = 0; from < events.length || from === 0; from += perFile) {
      const bytes = Buffer.from(
        events
          .slice(from, from + perFile)
          .map(lineOf)
          .join(''),
      );
      const index = files.length;
      const sink = await opened.openFile(index);
      for await (const piece of sourceOf(options, bytes)) {
        signal?.throwIfAborted();
        await sink.write(Buffer.from(piece));
      }
      await sink.close();
      const rows = Math.min(perFile, events.length - from);
      const sha256 = createHash('sha256').update(bytes).digest('hex');
      files.push({ index, rows, bytes: bytes.length, uncompressedBytes: bytes.length, sha256 });
    }
    return await opened.finish({ files, rows: events.length, hash: `hash-${events.length}` });
  } catch (error) {
    await opened.abort();
    throw error;
  } finally {
    await opened.close();
  }
}

/** What a rejected promise was rejected with. */
export async function failureOf(work: Promise<unknown>): Promise<Error> {
  return work.then(
    (value) => {
      throw new Error(`expected a failure, got ${JSON.stringify(value)}`);
    },
    (error) => error as Error,
  );
}

/** Everything of an error that could end up in a log or in an answer. */
export function textOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const more = { ...error, message: error.message, stack: error.stack };
  return `${JSON.stringify(more)} ${error.cause === undefined ? '' : textOf(error.cause)}`;
}
