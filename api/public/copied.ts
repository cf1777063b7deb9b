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

/**
 * Reads what a project has, and keeps a copy of it on disk. The copy serves if the database is slow or away. Undefined:
 * there is nothing to keep.
 */
export function copied<T extends object>(
  copies: Copies | undefined,
  kind: string,
  read: (projectId: string) => Promise<T | undefined>,
): (projectId: string) => Promise<T | undefined> {
  const waiting = new Patience();
  return async (projectId) => {
    const reading = read(projectId);
    if (!copies) return reading;
    const found = await waiting.wait(reading);
    if (found === LATE) {
      const [line] = (await copies.read(kind, projectId)) ?? [];
      return line === undefined ? reading : JSON.parse(line);
    }
    waiting.answered();
    if (found) copies.save(kind, projectId, () => [JSON.stringify(found)]);
    else copies.remove(kind, projectId);
    return found;
  };
}
