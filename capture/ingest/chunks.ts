/** Of a chunk, unless something larger has to be in one piece. */
export const CHUNK_BYTES = 256 * 1024;
const KEPT_CHUNKS = 32;

const free: Buffer[] = [];

/** Gives a chunk back that nobody reads any more. */
export function recycle(chunk: Buffer): void {
  const { buffer, byteOffset } = chunk;
  if (byteOffset !== 0 || buffer.byteLength !== CHUNK_BYTES || free.length >= KEPT_CHUNKS) return;
  free.push(Buffer.from(buffer as ArrayBuffer));
}

/** Memory of its own for each chunk, as it may outlive the call by much. At least as many bytes, usually more. */
export function allocateChunk(bytes: number): Buffer {
  return bytes > CHUNK_BYTES
    ? Buffer.allocUnsafeSlow(bytes)
    : (free.pop() ?? Buffer.allocUnsafeSlow(CHUNK_BYTES));
}

/** A chunk that holds something of several requests, and is free when all have let go of it. */
export class SharedChunk {
  readonly bytes: Buffer;
  #holders = 1;

  /** Held by who makes it. */
  constructor(bytes: number) {
    this.bytes = allocateChunk(bytes);
  }

  hold(): void {
    this.#holders += 1;
  }

  release(): void {
    this.#holders -= 1;
    if (this.#holders === 0) recycle(this.bytes);
  }
}
