import { type BrokenRowsError, brokenRows, COPY_HEADER, checkCopyHeader } from './copy-format.ts';
import type { Kernel, Region } from './kernel/kernel.ts';
import { REASON, STATUS } from './kernel/layout.ts';

/** An encoder of a format. `encodeRows` gives it whole rows. */
export interface RowEncoder {
  /**
   * Encodes the rows between two places in the kernel's memory. Returns a status when it cannot go on, see `resolve`.
   */
  encode(at: number, end: number): number;
  /** Does what `encode` stopped for, so that it can go on. */
  resolve(status: number): Promise<void>;
  /** Call it after the last row. Writes the rest and closes the files. */
  finish(): Promise<void>;
  /** Gives up. The caller aborts the files. */
  destroy(): void;
}

/** A row that does not fit the declared columns. The hash includes it, the files do not. */
export interface RejectedRow {
  /** The index of the row in the stream, from 0. */
  row: number;
  column: string;
  reason: string;
  /** The row in the binary form of COPY. */
  bytes: Buffer;
}

const ROOM = 256 * 1024 - 64;

/**
 * Brings the bytes of a COPY BINARY into the kernel's memory. The chunks may be cut anywhere. `encode` gets whole rows
 * and perhaps the beginning of one, and returns how far it came. Rows that it cannot encode are judged here.
 */
export class CopyInput {
  rejected = 0;
  readonly #kernel: Kernel;
  readonly #onReject: ((rejected: RejectedRow) => void) | undefined;
  #region: Region;
  #at: number;
  #end: number;
  #begun = false;
  #ended = false;

  constructor(kernel: Kernel, onReject?: (rejected: RejectedRow) => void) {
    this.#kernel = kernel;
    this.#onReject = onReject;
    this.#region = kernel.allocate(ROOM);
    this.#at = this.#region.at;
    this.#end = this.#at;
  }

  /** The number of rows so far, including the rejected ones. */
  get rows(): number {
    return this.#kernel.run.rows.value + this.rejected;
  }

  /** Takes as many bytes of the chunk as fit, and returns how many it took. */
  append(chunk: Uint8Array, from: number): number {
    if (this.#ended) throw brokenRows('there is more after its end', false);
    const rest = this.#end - this.#at;
    if (this.#at > this.#region.at) {
      this.#kernel.bytes.copyWithin(this.#region.at, this.#at, this.#end);
    } else if (rest === this.#region.size) {
      this.#region = this.#kernel.grow(this.#region, Math.max(this.#region.size * 2, this.#needed), rest);
    }
    this.#at = this.#region.at;
    const taken = Math.min(this.#region.size - rest, chunk.length - from);
    this.#kernel.bytes.set(chunk.subarray(from, from + taken), this.#at + rest);
    this.#end = this.#at + rest + taken;
    if (!this.#begun) this.#readHeader();
    return taken;
  }

  /**
   * Lets `encode(at, end)` go on. Returns `more` when all whole rows are encoded. The encoder has to resolve any other
   * status; then call this again.
   */
  advance(encode: (at: number, end: number) => number): number {
    if (!this.#begun || this.#ended) return STATUS.more;
    for (;;) {
      const status = encode(this.#at, this.#end);
      this.#at = this.#kernel.run.position.value;
      if (status === STATUS.fault) throw this.#fault();
      if (status === STATUS.reject) {
        this.#reject();
        continue;
      }
      if (status !== STATUS.end) return status;
      this.#ended = true;
      if (this.#end - this.#at > 2) throw brokenRows('there is more after its end', false);
      return STATUS.more;
    }
  }

  /** Call it after the last chunk. */
  finish(): void {
    if (this.#ended) return;
    const rest = this.#begun ? `row ${this.rows} or its end` : 'its header';
    throw brokenRows(`it stops before ${rest} is complete`, true);
  }

  get #needed(): number {
    return this.#begun ? this.#kernel.run.needed.value : COPY_HEADER.length;
  }

  #readHeader(): void {
    if (!checkCopyHeader(this.#kernel.bytes.subarray(this.#at, this.#end))) return;
    this.#begun = true;
    this.#at += COPY_HEADER.length;
  }

  #reject(): void {
    const { run, columns } = this.#kernel;
    const next: number = run.next.value;
    const column = columns[run.faultColumn.value]?.name ?? '';
    this.#onReject?.({
      row: this.rows,
      column,
      reason:
        run.faultReason.value === REASON.nullValue
          ? `"${column}" is null, which it never should be`
          : `"${column}" is an array of ${run.faultValue.value} dimensions, and only those of one can be exported`,
      bytes: this.#kernel.copy(this.#at, next),
    });
    run.addHash(run.xxh64(this.#at, next - this.#at));
    this.rejected += 1;
    this.#at = next;
  }

  #fault(): BrokenRowsError {
    const { run, columns } = this.#kernel;
    const value: number = run.faultValue.value;
    const column = columns[run.faultColumn.value];
    const name = `"${column?.name}"`;
    const where = `row ${this.rows}`;
    const texts: Record<number, string> = {
      [REASON.fieldCount]: `${where} has ${value} fields, and there are ${columns.length} columns`,
      [REASON.fieldLength]: `${where} says that ${name} has ${value} bytes`,
      [REASON.fieldWidth]: `${where} has ${value} bytes in ${name}, which is no ${column?.type}`,
      [REASON.brokenList]: `${where} has something in ${name} that is no array of texts`,
    };
    return brokenRows(texts[run.faultReason.value] ?? `${where} cannot be read`, false);
  }
}
