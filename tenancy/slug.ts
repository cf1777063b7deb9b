export const SLUG_LENGTH = 48;

/** Turns a name into a slug for URLs: ASCII, lower case, words joined by `-`. The slug may be empty. */
export function slugify(name: string): string {
  return name
    .normalize('NFKD')
    .replace(/[^\x20-\x7e\s]/g, '')
    .toLowerCase()
    .replace(/[^a-z0-9_\s-]/g, '')
    .replace(/[-\s]+/g, '-')
    .slice(0, SLUG_LENGTH)
    .replace(/^[-_]+|[-_]+$/g, '');
}

/** Returns the slug for an attempt. Attempt 0 gets the plain slug, the others get one with four random letters. */
export function slugCandidate(
  name: string,
  attempt: number,
  randomLetters: (length: number) => string,
): string {
  const plain = slugify(name) || 'organization';
  return attempt === 0 ? plain : `${plain.slice(0, SLUG_LENGTH - 5)}-${randomLetters(4)}`;
}
