import { mkdirSync, readdirSync, renameSync, watch, writeFileSync } from 'node:fs';
import path from 'node:path';

/** How many empty namespaces wait for tests that take one. Each costs the server work for as long as it runs. */
const AHEAD = 16;
const LONGEST_WAIT = 60_000;

const foldersIn = (stateDir: string) => ({
  free: path.join(stateDir, 'namespaces', 'free'),
  taken: path.join(stateDir, 'namespaces', 'taken'),
});

/** The namespaces that Temporal has from its start. */
export const firstNamespaces = (): string[] => Array.from({ length: AHEAD }, (_, index) => nameOf(index + 1));

const nameOf = (number: number) => `test-${number}`;

/** Offers the first namespaces, and a new one for each that is taken. Ends with the process. */
export function offerNamespaces(
  stateDir: string,
  make: (namespace: string) => Promise<void>,
  tell: (error: Error) => void,
): void {
  const { free, taken } = foldersIn(stateDir);
  for (const folder of [free, taken]) mkdirSync(folder, { recursive: true });
  const offer = (namespace: string) => writeFileSync(path.join(free, namespace), '');
  for (const namespace of firstNamespaces()) offer(namespace);
  let made = AHEAD;
  let isMaking = false;
  const refill = async () => {
    if (isMaking) return;
    isMaking = true;
    try {
      while (made < readdirSync(taken).length + AHEAD) {
        made += 1;
        await make(nameOf(made));
        offer(nameOf(made));
      }
    } finally {
      // One that could not be made is left out, and the next that is taken begins anew.
      isMaking = false;
    }
  };
  watch(taken, () => void refill().catch(tell));
}

/** Takes a namespace that nobody else of the run has or gets. */
export function takeNamespace(stateDir: string): string {
  const { free, taken } = foldersIn(stateDir);
  for (const end = Date.now() + LONGEST_WAIT; Date.now() < end; ) {
    for (const namespace of readdirSync(free)) {
      try {
        // Of several processes that move a file only one succeeds.
        renameSync(path.join(free, namespace), path.join(taken, namespace));
        return namespace;
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
      }
    }
    // The process that makes them is another one.
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 50);
  }
  throw new Error(`No Temporal namespace became free within ${LONGEST_WAIT / 1000} s.`);
}
