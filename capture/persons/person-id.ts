import { createHash } from 'node:crypto';

const NAMESPACE = Buffer.from('932979b465c3442484670b66ec27bc22', 'hex');
const TEXT = /^(.{8})(.{4})(.{4})(.{4})(.{12})$/;

function uuidV5(name: string): string {
  const digest = createHash('sha1').update(NAMESPACE).update(name).digest();
  digest[6] = ((digest[6] as number) & 0x0f) | 0x50;
  digest[8] = ((digest[8] as number) & 0x3f) | 0x80;
  return digest.toString('hex', 0, 16).replace(TEXT, '$1-$2-$3-$4-$5');
}

/** As many ids are kept at hand, so that who comes often is hashed once. */
const REMEMBERED = 20_000;
let remembered = new Map<string, string>();

/**
 * The id that the person of a distinct_id has at first, a uuid of version 5. Events of somebody who is no person yet
 * carry it already, so that nothing needs rewriting when they become one.
 */
export function personId(projectId: number, distinctId: string): string {
  const name = `${projectId}:${distinctId}`;
  const known = remembered.get(name);
  if (known !== undefined) return known;
  if (remembered.size >= REMEMBERED) remembered = new Map();
  const id = uuidV5(name);
  remembered.set(name, id);
  return id;
}

export function groupId(projectId: number, groupTypeIndex: number, key: string): string {
  return uuidV5(`${projectId}:group ${groupTypeIndex}:${key}`);
}
