import { createHash, randomUUID } from 'node:crypto';
import type { HiddenFile } from '../destination.ts';
import { DestinationError } from '../errors.ts';
import { joiningLimit, requestLimit } from '../limits.ts';
import { type PartBuffers, Parts } from '../parts.ts';
import { type Answer, type Found, MARK, type NewObject, NONE } from './api.ts';
import { type Asker, type GoogleConnection, isAbsent, isOutdated, place, statusOf } from './connection.ts';

/** The most parts of a file, see `partSize`. Google takes 5 TiB. */
const MOST_PARTS = 86_000;
/** All that is sent before the end of a file is a multiple of this. */
const QUANTUM = 256 * 1024;
/** The most bytes of the ends of files that wait to be published. */
const MOST_WAITING = 64 * 1024 * 1024;

/** The object that is there. Undefined if there is none. */
export function find(
  connection: GoogleConnection,
  key: string,
  signal?: AbortSignal,
): Promise<Found | undefined> {
  const { api } = connection;
  return connection.send(
    async ({ ask }) => {
      try {
        return api.found(await ask(api.find(key)));
      } catch (error) {
        if (isAbsent(error)) return undefined;
        throw error;
      }
    },
    { key, doing: 'storage.objects.get', signal, cut: signal },
  );
}

/** How many bytes of a session the server has kept. */
function keptOf({ status, headers }: Answer): number {
  if (status !== 308) return Number.POSITIVE_INFINITY;
  const end = /^bytes=0-(\d+)$/.exec(String(headers.range ?? ''))?.[1];
  return end === undefined ? 0 : Number(end) + 1;
}

/** What the ends of the files of one attempt take in memory, together. */
export class Waiting {
  #bytes = 0;
  /** Whether there is room for so many more bytes. */
  takes(bytes: number): boolean {
    if (this.#bytes + bytes > MOST_WAITING) return false;
    this.#bytes += bytes;
    return true;
  }
  give(bytes: number): void {
    this.#bytes -= bytes;
  }
}

interface GoogleUploadOptions {
  connection: GoogleConnection;
  buffers: PartBuffers;
  waiting: Waiting;
  key: string;
  labels: Record<string, string>;
  signal?: AbortSignal | undefined;
  /** Whether a file smaller than a part may stay in memory, to be sent in one request. */
  mayWait: boolean;
}

/**
 * Uploads one object in a resumable session, part after part. Google makes the object of it when the last byte arrives.
 * So the last bytes, fewer than QUANTUM, stay in memory until `publish`. A file that is not longer is one request.
 */
export class GoogleUpload implements HiddenFile {
  readonly #options: GoogleUploadOptions;
  readonly #file: Parts;
  readonly #object: Omit<NewObject, 'replaces'>;
  readonly #md5 = createHash('md5');
  /** The generation that was there before the upload began. A session carries the condition from its beginning. */
  #seen: Promise<string> | undefined;
  #session: Promise<string> | undefined;
  /** The parts go one after the other. */
  #last: Promise<void> = Promise.resolve();
  /** How many bytes the session has. */
  #kept = 0;
  /** The end of the file, which is not sent yet. */
  #rest: Buffer = Buffer.alloc(0);
  #isWaiting = false;

  constructor(options: GoogleUploadOptions) {
    this.#options = options;
    const { buffers, signal, key, labels } = options;
    const metadata = { ...labels, [MARK]: randomUUID() };
    this.#object = { key, metadata, contentType: 'application/octet-stream' };
    this.#file = new Parts({
      ...{ buffers, signal, most: MOST_PARTS },
      tooLarge: () => this.#error('rejected', 'the file is too large for Google; set max_file_size_mb'),
      send: (_number, bytes, control) => {
        this.#last = this.#last.then(() => this.#sendPart(bytes, control));
        return this.#last;
      },
    });
  }

  get mark(): string {
    return this.#object.metadata[MARK] as string;
  }

  #error(code: 'rejected' | 'overtaken' | 'conflict' | 'interrupted', text: string, cause?: unknown) {
    const { connection, key } = this.#options;
    return new DestinationError(code, `${place(connection.config, key)}: ${text}`, { cause });
  }

  write(chunk: Buffer): void | Promise<void> {
    return this.#file.write(chunk);
  }

  async #sendPart(bytes: Buffer, { signal, cut }: { signal: AbortSignal; cut: AbortSignal }): Promise<void> {
    const whole = bytes.length - (bytes.length % QUANTUM);
    this.#md5.update(bytes);
    // Only the last part is no multiple. Its memory is used again.
    this.#rest = Buffer.from(bytes.subarray(whole));
    if (whole === 0) return;
    this.#session ??= this.#begin(signal);
    const session = await this.#session;
    signal.throwIfAborted();
    const [from, end] = [this.#kept, this.#kept + whole];
    const { connection, key } = this.#options;
    let isRepeated = false;
    await connection.send(
      async ({ askSession }) => {
        // The server may have kept a part of what it did not acknowledge.
        let kept = isRepeated ? await this.#keptBy(askSession, session) : from;
        isRepeated = true;
        if (kept < from) throw this.#error('conflict', 'the server has lost a part of the upload');
        while (kept < end) {
          const headers = { 'content-range': `bytes ${kept}-${end - 1}/*` };
          const body = bytes.subarray(kept - from, whole);
          const next = keptOf(await askSession({ method: 'PUT', path: session, headers, body }));
          if (next <= kept || next > end)
            throw this.#error('interrupted', 'the server kept no byte of a part');
          kept = next;
        }
      },
      {
        ...{ key, doing: 'storage.objects.create', signal, cut },
        ...{ rowBytes: whole, limit: requestLimit(connection.limits, whole) },
      },
    );
    this.#kept = end;
  }

  async #keptBy(askSession: Asker['askSession'], session: string): Promise<number> {
    const headers = { 'content-range': 'bytes */*', 'content-length': 0 };
    return keptOf(await askSession({ method: 'PUT', path: session, headers }));
  }

  /** The generation that may be replaced. */
  #look(signal?: AbortSignal): Promise<string> {
    const { connection, key } = this.#options;
    this.#seen ??= find(connection, key, signal).then((found) => found?.generation ?? NONE);
    return this.#seen;
  }

  /** Begins the session. Nobody can list sessions; Google forgets one that nobody ends after a week. */
  async #begin(signal: AbortSignal): Promise<string> {
    const { connection, key } = this.#options;
    const replaces = await this.#look(signal);
    const answer = await connection.send(
      async ({ ask }) => {
        try {
          return await ask(connection.api.begin({ ...this.#object, replaces }));
        } catch (error) {
          if (statusOf(error) !== 412) throw error;
          throw this.#error('overtaken', 'somebody else was faster', error);
        }
      },
      { key, doing: 'storage.objects.create', signal },
    );
    const url = URL.parse(String(answer.headers.location ?? ''));
    if (!url) throw this.#error('interrupted', 'the server began no upload');
    // The server names the session. Requests go to the configured endpoint all the same.
    return url.pathname + url.search;
  }

  async close(): Promise<void> {
    const { mayWait, waiting } = this.#options;
    const whole = mayWait ? this.#file.takeWhole() : undefined;
    if (whole) {
      this.#rest = whole;
      this.#md5.update(whole);
    } else await this.#file.finish();
    if (!mayWait && !waiting.takes(this.#rest.length))
      throw this.#error('rejected', 'the interval has too many files at once; set max_file_size_mb higher');
    this.#isWaiting = !mayWait;
    await this.#look(this.#file.signal);
  }

  #forget(): void {
    if (this.#isWaiting) this.#options.waiting.give(this.#rest.length);
    this.#isWaiting = false;
    this.#rest = Buffer.alloc(0);
  }

  /** On condition that the object there is still the one that was seen: a late request overwrites nothing newer. */
  async publish(): Promise<void> {
    const { connection, key } = this.#options;
    const { limits, api } = connection;
    const replaces = await this.#look();
    const session = await this.#session;
    const rest = this.#rest;
    const total = this.#kept + rest.length;
    let isRepeated = false;
    const end = async ({ ask, askSession }: Asker): Promise<Answer | undefined> => {
      // Perhaps only the answer got lost.
      if (isRepeated && (await this.#isOwn())) return undefined;
      isRepeated = true;
      try {
        if (session === undefined) return await ask(api.put({ ...this.#object, replaces }, rest));
        const range = rest.length === 0 ? `bytes */${total}` : `bytes ${this.#kept}-${total - 1}/${total}`;
        const headers = { 'content-range': range, 'content-length': rest.length };
        const answer = await askSession({ method: 'PUT', path: session, headers, body: rest });
        if (answer.status === 308) throw this.#error('interrupted', 'the server wants more of the file');
        return answer;
      } catch (error) {
        // Nobody has the session any more: the object was made, or Google has given the session up.
        const isGone = session !== undefined && [404, 410, 499].includes(statusOf(error) ?? 0);
        if (!isGone && !isOutdated(error, replaces)) throw error;
        if (await this.#isOwn()) return undefined;
        if (isGone) throw this.#error('conflict', 'the server has given the upload up', error);
        throw this.#error('overtaken', 'somebody else was faster', error);
      }
    };
    try {
      const answer = await connection.send(end, {
        ...{
          key,
          doing: 'storage.objects.create',
          rowBytes: rest.length,
          mayBeSilent: session !== undefined,
        },
        limit: requestLimit(limits, rest.length) + (session === undefined ? 0 : joiningLimit(limits, total)),
      });
      const md5 = answer && api.md5(answer);
      if (md5 !== undefined && md5 !== this.#md5.digest('base64'))
        throw this.#error('interrupted', 'the bytes were damaged on their way');
    } catch (error) {
      // The same, if the server fell silent over it.
      const isSilent = error instanceof DestinationError && error.code === 'timed-out';
      if (!isSilent || !(await this.#isOwn().catch(() => false))) throw error;
    }
    this.#session = undefined;
    this.#forget();
  }

  /** Whether this attempt wrote the object that is there. */
  async #isOwn(): Promise<boolean> {
    const { connection, key } = this.#options;
    return (await find(connection, key))?.mark === this.mark;
  }

  async abort(): Promise<void> {
    const { connection, key } = this.#options;
    await this.#file.abort(connection.graceMilliseconds);
    this.#forget();
    const session = await this.#session?.catch(() => undefined);
    if (session === undefined) return;
    this.#session = undefined;
    await connection
      .send(
        ({ askSession }) =>
          // Google says 499 when it has given the session up.
          askSession({ method: 'DELETE', path: session, headers: { 'content-length': 0 } }).catch((error) => {
            if (![404, 410, 499].includes(statusOf(error) ?? 0)) throw error;
          }),
        { key, doing: 'storage.objects.create', attempts: 1 },
      )
      .catch(() => undefined);
  }
}
