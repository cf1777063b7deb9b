const CHUNK = 256 * 1024;
const KEPT_CHUNKS = 16;

const free: Buffer[] = [];

/** Gives a chunk back that has left the process. */
export function recycle(chunk: Buffer): void {
  const { buffer, byteOffset } = chunk;
  if (byteOffset !== 0 || buffer.byteLength !== CHUNK || free.length >= KEPT_CHUNKS) return;
  free.push(Buffer.from(buffer as ArrayBuffer));
}

/** Memory of its own for each chunk, as it may outlive the call by much. At least as many bytes, usually more. */
export function allocateChunk(bytes: number): Buffer {
  return bytes > CHUNK ? Buffer.allocUnsafeSlow(bytes) : (free.pop() ?? Buffer.allocUnsafeSlow(CHUNK));
}
