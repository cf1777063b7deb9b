// Names of files for functions. People give functions any name: with slashes, of 400 characters, in any language.

const LONGEST = 60;
/** Names that no file may have on Windows, and one that is taken. */
const RESERVED = /^(con|prn|aux|nul|com\d|lpt\d)$/;

/** Turns the name of a function into the name of a file without its ending. It has only letters, digits and hyphens. */
export function fileStem(name: string | null): string {
  const words = (name ?? '')
    .normalize('NFC')
    .toLowerCase()
    .toWellFormed()
    .replaceAll(/[^\p{L}\p{N}]+/gu, '-');
  const stem = [...words]
    .slice(0, LONGEST)
    .join('')
    .replaceAll(/^-+|-+$/g, '');
  return stem === '' || RESERVED.test(stem) ? `function${stem && '-'}${stem}` : stem;
}

/** Finds a name that nothing has. The end of the id tells functions apart that people call the same. */
export function freeStem(name: string | null, id: string, isTaken: (stem: string) => boolean): string {
  const stem = fileStem(name);
  if (!isTaken(stem)) return stem;
  const other = `${stem}-${id.slice(-12)}`;
  return isTaken(other) ? `${stem}-${id}` : other;
}
