/** Puts an entry into a map that holds so many at most, and forgets its oldest ones. */
export function remember<K, V>(map: Map<K, V>, key: K, value: V, most: number): void {
  map.delete(key);
  if (map.size >= most) map.delete(map.keys().next().value as K);
  map.set(key, value);
}
