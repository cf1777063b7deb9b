import os from 'node:os';

/** The memory of the machine in bytes, or of the container that this process lives in if that is less. */
export function machineMemory(): number {
  const limit = process.constrainedMemory();
  return limit > 0 ? Math.min(limit, os.totalmem()) : os.totalmem();
}
