import { createHash } from 'node:crypto';

const NAMESPACE = Buffer.from('932979b465c3442484670b66ec27bc22', 'hex');
const TEXT = /^(.{8})(.{4})(.{4})(.{4})(.{12})$/;

function uuidV5(name: string): string {
  const digest = createHash('sha1').update(NAMESPACE).update(name).digest();
  digest[6] = ((digest[6] as number) & 0x0f) | 0x50;
  digest[8] = ((digest[8] as number) & 0x3f) | 0x80;
  return digest.toString('hex', 0, 16).replace(TEXT, '$1-$2-$3-$4-$5');
}

/** How many ids are remembered, so that a frequent distinct_id is hashed only once. */
const REMEMBERED = 20_000;
let remembered = new Map<string, string>();

/**
 * The uuid (version 5) of the person that a distinct_id creates. Anonymous events carry it before that person exists,
 * so they need no change when it is created.
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
