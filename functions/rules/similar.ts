// Names that are like a text, for whoever mistypes one.

/** How much of the text a name must have. */
const ENOUGH = 0.3;

/** The parts of three characters of the words of a text. Beginnings and ends of words are parts of their own. */
function trigramsOf(text: string): Set<string> {
  const found = new Set<string>();
  for (const [word] of text.toLowerCase().matchAll(/[\p{L}\p{N}]+/gu)) {
    const padded = `  ${word} `;
    for (let at = 0; at + 3 <= padded.length; at += 1) found.add(padded.slice(at, at + 3));
  }
  return found;
}

/** Chooses what has a name like a text, the most similar first. */
export function similarTo<T extends { name: string }>(text: string, named: readonly T[]): T[] {
  const wanted = trigramsOf(text);
  if (wanted.size === 0) return [];
  const scored = named.map((one) => {
    const own = trigramsOf(one.name);
    let common = 0;
    for (const part of wanted) if (own.has(part)) common += 1;
    return { one, score: common / wanted.size };
  });
  return scored
    .filter(({ score }) => score >= ENOUGH)
    .toSorted((a, b) => b.score - a.score)
    .map(({ one }) => one);
}
