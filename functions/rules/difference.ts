// Compares what two versions of a function do.

/** One place where two values differ. A value that is missing on one side has no such field. */
export interface Difference {
  /** Such as `fetches[0].body.text`. */
  path: string;
  running?: unknown;
  proposed?: unknown;
}

const LONGEST_VALUE = 10_000;
const DEEPEST = 50;

/** Lists where two values of JSON differ, at most `most` places. */
export function differences(running: unknown, proposed: unknown, most: number, path = ''): Difference[] {
  const found: Difference[] = [];
  compare(running, proposed, path, found, most, 0);
  return found;
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null;

const PLAIN = /^[A-Za-z_$][\w$]*$/;
/** The path of a field, or of an entry of a list. */
const within = (path: string, key: string | number): string => {
  if (typeof key === 'number') return `${path}[${key}]`;
  if (!PLAIN.test(key)) return `${path}[${JSON.stringify(key)}]`;
  return path === '' ? key : `${path}.${key}`;
};

function compare(
  running: unknown,
  proposed: unknown,
  path: string,
  found: Difference[],
  most: number,
  depth: number,
): void {
  if (found.length >= most || Object.is(running, proposed)) return;
  const alike = isObject(running) && isObject(proposed) && Array.isArray(running) === Array.isArray(proposed);
  if (!alike || depth > DEEPEST) {
    if (alike && JSON.stringify(running) === JSON.stringify(proposed)) return;
    found.push({
      path,
      ...(running === undefined ? {} : { running: shown(running) }),
      ...(proposed === undefined ? {} : { proposed: shown(proposed) }),
    });
    return;
  }
  const keys = Array.isArray(running)
    ? Array.from({ length: Math.max(running.length, Object.keys(proposed).length) }, (_, index) => index)
    : [...new Set([...Object.keys(running), ...Object.keys(proposed)])];
  for (const key of keys) {
    const [before, after] = [running, proposed].map((one) =>
      Object.hasOwn(one, key) ? (one as Record<string | number, unknown>)[key] : undefined,
    );
    compare(before, after, within(path, key), found, most, depth + 1);
  }
}

/** A value that is too long to be shown becomes the beginning of its text. */
function shown(value: unknown): unknown {
  const text = typeof value === 'string' ? value : (JSON.stringify(value) ?? 'null');
  return text.length <= LONGEST_VALUE ? value : `${text.slice(0, LONGEST_VALUE)}... (truncated)`;
}
