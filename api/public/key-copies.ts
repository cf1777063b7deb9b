import { createHash } from 'node:crypto';
import type { Copies } from '../copies.ts';
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
