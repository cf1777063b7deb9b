import type { FastifyReply, FastifyRequest } from 'fastify';
import { RESULT_FORMATS, type ResultFormat } from '../../queries/rules/result-file.ts';
import { Outlet } from '../outlet.ts';

/** The media type of each format, and the end of its file names. */
const FILES: Readonly<Record<ResultFormat, { type: string; extension: string }>> = {
  csv: { type: 'text/csv', extension: 'csv' },
  jsonl: { type: 'application/x-ndjson', extension: 'jsonl' },
  parquet: { type: 'application/vnd.apache.parquet', extension: 'parquet' },
  arrow: { type: 'application/vnd.apache.arrow.stream', extension: 'arrows' },
};

/** The media types of results as files. */
export const RESULT_TYPES: readonly string[] = RESULT_FORMATS.map((one) => FILES[one].type);

/** The format that a client accepts: that of the first media type it names that Sluice can answer with. */
export function acceptedFormat(accept: string | undefined): ResultFormat | 'json' {
  for (const part of (accept ?? '').toLowerCase().split(',')) {
    const type = part.split(';')[0]?.trim();
    if (type === 'application/json') return 'json';
    const found = RESULT_FORMATS.find((one) => FILES[one].type === type);
    if (found) return found;
  }
  return 'json';
}

/** The answers that are being sent. They end with the server. */
export class ResultFiles {
  readonly #open = new Set<Outlet>();
  readonly #patience: number;

  /** `patience`: the milliseconds in which a client takes a piece. */
  constructor(patience: number) {
    this.#patience = patience;
  }

  /**
   * Answers with a file while `write` makes it. What fails before the first piece is thrown. What fails later breaks the connection,
   * so that no client takes a part of the file for the whole.
   */
  async send(
    { raw, log, project }: FastifyRequest,
    reply: FastifyReply,
    format: ResultFormat,
    write: (outlet: Outlet) => Promise<void>,
  ): Promise<FastifyReply> {
    const outlet = new Outlet(this.#patience);
    this.#open.add(outlet);
    const made = write(outlet).then(
      () => outlet.end(),
      (error: Error) => outlet.fail(error),
    );
    void made.finally(() => this.#open.delete(outlet));
    outlet.stream.once('error', (err) => {
      // Older clients take the end of the connection for the end of the file, so it is no orderly one.
      if (!outlet.isBegun) return;
      if (!reply.raw.destroyed)
        log.info({ err, projectId: project.id }, 'the result of a query was broken off');
      raw.socket.resetAndDestroy?.();
    });
    await outlet.begun;
    const { type, extension } = FILES[format];
    return reply
      .type(format === 'csv' ? `${type}; charset=utf-8; header=present` : type)
      .header('content-disposition', `attachment; filename="query.${extension}"`)
      .send(outlet.stream as never);
  }

  /** Breaks off what is being sent. */
  close(): void {
    for (const outlet of this.#open) outlet.fail(new Error('The server stops.'));
  }
}
