const LARGEST = 2 ** 31 - 1;

/** Reads an id of the database that is a number, from a path. Undefined: nothing can have it. */
export function serialOf(text: string): number | undefined {
  const id = /^\d{1,10}$/.test(text) ? Number(text) : Number.NaN;
  return id >= 1 && id <= LARGEST ? id : undefined;
}
