import { createHash } from 'node:crypto';
import type { Copies } from '../copies.ts';
import { LATE, Patience } from './patience.ts';
import type { KeyCopies } from './project-keys.ts';

/** Keeps keys under a digest: whoever reads the disk learns no key. */
export function keyCopies(copies: Copies): KeyCopies {
  const nameOf = (token: string) => createHash('sha256').update(token).digest('hex');
  return {
    save: (token, project) => copies.save('keys', nameOf(token), () => [JSON.stringify(project)]),
    remove: (token) => copies.remove('keys', nameOf(token)),
    has: (token) => copies.has('keys', nameOf(token)),
    async read(token) {
      const [line] = (await copies.read('keys', nameOf(token))) ?? [];
      return line === undefined ? undefined : JSON.parse(line);
    },
  };
}

export interface CopiedOptions<T> {
  copies: Copies | undefined;
  /** The kind of its copies on disk. */
  kind: string;
  /** Whether what was read says that there is nothing to copy. */
  isGone?: (value: T) => boolean;
}

/** Reads by a name. While the database is away, the copy on disk of what was read last serves. */
export function createCopied<T>(
  read: (name: string) => Promise<T>,
  { copies, kind, isGone = () => false }: CopiedOptions<T>,
): (name: string) => Promise<T> {
  const waiting = new Patience();
  return async (name) => {
    const reading = read(name);
    if (!copies) return reading;
    const value = await waiting.wait(reading);
    if (value === LATE) {
      const [line] = (await copies.read(kind, name)) ?? [];
      return line === undefined ? reading : JSON.parse(line);
    }
    waiting.answered();
    if (isGone(value)) copies.remove(kind, name);
    else copies.save(kind, name, () => [JSON.stringify(value)]);
    return value;
  };
}
