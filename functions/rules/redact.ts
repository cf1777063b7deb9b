const HIDDEN = '***REDACTED***';
const DEEPEST = 10;
/** A shorter secret is a part of ordinary words, and of the names of fields. */
const SHORT = 6;
/** Names of headers and inputs whose values are credentials, whatever their schema says. */
const CREDENTIAL = /authorization|api[-_]?key|token|secret|password|cookie|signature/i;
const SCHEMES = ['Bearer ', 'Basic ', 'Token '];

/** Lists all texts in a value. */
function* textsOf(value: unknown, depth = 0): Generator<string> {
  if (typeof value === 'string') yield value;
  else if (typeof value === 'number') yield String(value);
  else if (typeof value === 'object' && value !== null && depth < DEEPEST) {
    for (const one of Object.values(value)) yield* textsOf(one, depth + 1);
  }
}

/** Lists texts under names that say that they are credentials. */
function* credentialsOf(value: unknown, depth = 0): Generator<string> {
  if (typeof value !== 'object' || value === null || depth >= DEEPEST) return;
  for (const [name, one] of Object.entries(value)) {
    if (typeof one === 'string' && CREDENTIAL.test(name)) {
      yield one;
      const scheme = SCHEMES.find((begin) => one.startsWith(begin));
      if (scheme) yield one.slice(scheme.length);
    } else yield* credentialsOf(one, depth + 1);
  }
}

/** A text as it may stand in a log: as it is, within JSON and URLs, and encoded by a program or a service. */
function forms(text: string): string[] {
  const plain = [text, JSON.stringify(text).slice(1, -1), encodeURIComponent(text.toWellFormed())];
  if (text.length < SHORT) return plain;
  const bytes = Buffer.from(text);
  const base64 = bytes.toString('base64').replace(/=+$/, '');
  return [...plain, base64, bytes.toString('base64url'), bytes.toString('hex')];
}

const escaped = (text: string) => text.replaceAll(/[.*+?^${}()|[\]\\/]/g, '\\$&');

/** Replaces secrets in everything that people read. */
export interface Redact {
  text(text: string): string;
  /** Also replaces them in every text of a value. In keys, only those that are not short. */
  value(value: unknown): unknown;
  /** Whether there is surely nothing to replace in what this JSON stands for. */
  hasNothing(json: string): boolean;
}

/**
 * Hides the given secrets, and credentials in inputs that are not marked as secret. Longer ones are replaced first, so
 * that nothing is left of a secret that contains another one.
 */
export function redactor(secrets: unknown, inputs: unknown): Redact {
  const found = new Set(
    [...textsOf(secrets), ...credentialsOf(inputs)].filter((one) => one.trim() !== '').flatMap(forms),
  );
  if (found.size === 0) return { text: (text) => text, value: (value) => value, hasNothing: () => true };
  const longestFirst = [...found].toSorted((a, b) => b.length - a.length);
  const replacing = (secrets: readonly string[]) => {
    if (secrets.length === 0) return (one: string) => one;
    const pattern = new RegExp(secrets.map(escaped).join('|'), 'g');
    return (one: string) => one.replaceAll(pattern, HIDDEN);
  };
  const text = replacing(longestFirst);
  const name = replacing(longestFirst.filter((one) => one.length >= SHORT));
  const number = (one: number) => {
    const digits = String(one);
    return found.has(digits) || name(digits) !== digits ? HIDDEN : one;
  };
  const value = (one: unknown, depth = 0): unknown => {
    if (typeof one === 'string') return text(one);
    if (typeof one === 'number') return number(one);
    if (typeof one !== 'object' || one === null || depth > 100) return one;
    if (Array.isArray(one)) return one.map((entry) => value(entry, depth + 1));
    return Object.fromEntries(
      Object.entries(one).map(([key, entry]) => [name(key), value(entry, depth + 1)]),
    );
  };
  const pattern = new RegExp(longestFirst.map(escaped).join('|'));
  // A number can be written in several ways, and so can a text with a backslash.
  const isNumeric = longestFirst.some((one) => /^[\d.eE+-]+$/.test(one));
  const hasNothing = (json: string) => !isNumeric && !json.includes('\\') && json.search(pattern) < 0;
  return { text, value: (one) => value(one), hasNothing };
}
