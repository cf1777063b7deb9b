export const SLUG_LENGTH = 48;

/** A name as it stands in addresses: ASCII, lower case, words joined by `-`. May be empty. */
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

/** The slug to try at the n-th attempt (from 0): the plain one, then with four random letters. */
export function slugCandidate(
  name: string,
  attempt: number,
  randomLetters: (length: number) => string,
): string {
  const plain = slugify(name) || 'organization';
  return attempt === 0 ? plain : `${plain.slice(0, SLUG_LENGTH - 5)}-${randomLetters(4)}`;
}
