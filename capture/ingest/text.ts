/** What Postgres cannot hold in a text, and what JSON may spell but `->>` cannot read back. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: that control character is what is looked for
const NUL = /\u0000/g;
const UNREADABLE_ESCAPE = /\\u(?:0000|d[89a-f])/;
const REPLACEMENT = '\ufffd';

/** The text as a `text` column can hold it. Parsing did this already for all it knows of; costs nothing if so. */
export function cleanText(text: string): string {
  const whole = text.isWellFormed() ? text : text.toWellFormed();
  return whole.includes('\u0000') ? whole.replace(NUL, REPLACEMENT) : whole;
}

function cleanValue(value: unknown): unknown {
  if (typeof value === 'string') return cleanText(value);
  if (Array.isArray(value)) return value.map(cleanValue);
  if (typeof value === 'object' && value !== null) {
    if (typeof (value as { toJSON?: unknown }).toJSON === 'function') return value;
    return Object.fromEntries(
      Object.entries(value).map(([key, entry]) => [cleanText(key), cleanValue(entry)]),
    );
  }
  return value;
}

/** Properties as JSON that Postgres stores and reads; the chain of elements has a column of its own. */
export function propertiesText(properties: Record<string, unknown>, withoutElementsChain: boolean): string {
  const kept = withoutElementsChain ? { ...properties, $elements_chain: undefined } : properties;
  const text = JSON.stringify(kept);
  // Such escapes are rare, and a backslash before "u" is nearly as rare: most texts are searched once.
  if (text.includes('\\u') && UNREADABLE_ESCAPE.test(text)) return JSON.stringify(cleanValue(kept));
  return text;
}
