/** The elements of an array that was sent to Postgres in binary form. */
export function sentElements(array: Buffer): Buffer[] {
  if (array.readInt32BE(0) === 0) return [];
  const elements: Buffer[] = [];
  for (let at = 20; at < array.length; ) {
    const end = at + 4 + array.readInt32BE(at);
    elements.push(array.subarray(at + 4, end));
    at = end;
  }
  return elements;
}
