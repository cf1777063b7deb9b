import type { Duplex } from 'node:stream';
import pg from 'pg';

// A server that a user names may send anything. The client trusts it: some messages would stop the process, one would
// keep it busy for ever, and answers without an end would fill its memory. So the client sees only messages that are
// whole, short enough and of a form that it can read.

/** What a server answers to one statement. Sluice asks for a few rows at most. */
const MOST_ANSWER_BYTES = 1024 * 1024;
/** An error or a notice. It may repeat a value of a row. */
const MOST_ERROR_BYTES = 16 * 1024 * 1024;

const HEADER_BYTES = 5;
const ERROR = 'E';
const NOTICE = 'N';
const READY = 'Z';

/** A server sent what the client must not see. */
export class WireError extends Error {
  override name = 'WireError';
}

const refused = (what: string) => new WireError(`the answer is not one of Postgres: ${what}`);

/** Whether the fields of an error or a notice have an end: a type and a text each, then a zero. */
function isComplete(fields: Buffer): boolean {
  for (let at = 0; at < fields.length; ) {
    if (fields[at] === 0) return true;
    const end = fields.indexOf(0, at + 1);
    if (end === -1) return false;
    at = end + 1;
  }
  return false;
}

/** Cuts what a server sends into messages, and throws at the first that the client must not see. */
export class ServerMessages {
  #pieces: Buffer[] = [];
  #bytes = 0;
  /** The bytes of the message that is coming, as far as they are known. */
  #wanted = HEADER_BYTES;
  #answered = 0;

  /** Calls `take` with each message that is complete. */
  push(piece: Buffer, take: (message: Buffer) => void): void {
    this.#pieces.push(piece);
    this.#bytes += piece.length;
    while (this.#bytes >= this.#wanted) {
      const all = this.#pieces.length === 1 ? (this.#pieces[0] as Buffer) : Buffer.concat(this.#pieces);
      let at = 0;
      while (all.length - at >= HEADER_BYTES) {
        const length = this.#lengthOf(all, at);
        if (all.length - at < length) break;
        const message = all.subarray(at, at + length);
        this.#check(message);
        at += length;
        take(message);
      }
      const rest = all.subarray(at);
      this.#pieces = rest.length === 0 ? [] : [rest];
      this.#bytes = rest.length;
      this.#wanted = rest.length < HEADER_BYTES ? HEADER_BYTES : this.#lengthOf(rest, 0);
    }
  }

  #lengthOf(bytes: Buffer, at: number): number {
    const type = String.fromCharCode(bytes[at] as number);
    const length = bytes.readUInt32BE(at + 1);
    const most = type === ERROR || type === NOTICE ? MOST_ERROR_BYTES : MOST_ANSWER_BYTES;
    if (length < 4 || length > most) throw refused(`a message of ${length} bytes`);
    return length + 1;
  }

  #check(message: Buffer): void {
    const type = String.fromCharCode(message[0] as number);
    if (type === ERROR || type === NOTICE) {
      if (!isComplete(message.subarray(HEADER_BYTES))) throw refused('a message without an end');
      return;
    }
    this.#answered = type === READY ? 0 : this.#answered + message.length;
    if (this.#answered > MOST_ANSWER_BYTES)
      throw refused(`more than ${MOST_ANSWER_BYTES} bytes for one statement`);
  }
}

type Listener = (piece: Buffer) => void;
interface Attaching {
  attachListeners(stream: unknown): void;
}

/** A connection of the client that reads what the server sends by ServerMessages. */
export class CheckedConnection extends pg.Connection {
  attachListeners(stream: Duplex): void {
    const messages = new ServerMessages();
    const checked = (listener: Listener) => (piece: Buffer) => {
      if (stream.destroyed) return;
      try {
        messages.push(piece, (message) => {
          // What came before may have ended the connection.
          if (!stream.destroyed) listener(message);
        });
      } catch (error) {
        // The client throws at messages that it cannot read, or does not expect. Nobody else would catch it.
        stream.destroy(error instanceof WireError ? error : refused('a message that cannot be read'));
      }
    };
    (pg.Connection.prototype as unknown as Attaching).attachListeners.call(this, {
      on: (event: string, listener: Listener) =>
        stream.on(event, event === 'data' ? checked(listener) : listener),
    });
  }
}
