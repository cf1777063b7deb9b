// Where an export writes files, so that no two exports write the same objects over each other.

/** Keys that follow from a template and the interval. */
export interface WriteTarget {
  /** What the keys are in, in a form that is the same for everybody: `s3 aws bucket`, `file`. */
  store: string;
  /** With its variables, `{table}` included; behind a directory, where it stands in one. */
  prefix: string;
  model: string;
  interval: string;
}

/**
 * Whether two exports may write the same key. Names of objects hold the interval's start and end, so only exports of
 * intervals of the same length can meet; of those all do whose templates can give the same text.
 */
export function targetsCollide(one: WriteTarget, other: WriteTarget): boolean {
  return one.store === other.store && one.interval === other.interval && prefixesMeet(one, other);
}

/** What each variable can be, one sign after the other: a digit (`0`), or the sign itself. */
const VARIABLES: Readonly<Record<string, string>> = {
  year: '0000',
  month: '00',
  day: '00',
  hour: '00',
  minute: '00',
  second: '00',
  data_interval_start: '0000-00-00T00:00:00+00:00',
  data_interval_end: '0000-00-00T00:00:00+00:00',
};

interface Sign {
  text: string;
  digit: boolean;
}

/** A template as the texts that it can give: variables have a fixed length, so it is a list of signs. */
function signsOf({ prefix, model }: WriteTarget): Sign[] {
  const signs: Sign[] = [];
  const parts = prefix.replaceAll('{table}', model).matchAll(/(\{\{|\}\})|\{(\w+)\}|./gsu);
  for (const [part, escaped, name] of parts) {
    const form = name !== undefined && Object.hasOwn(VARIABLES, name) ? VARIABLES[name] : undefined;
    if (form === undefined) for (const text of escaped?.[0] ?? part) signs.push({ text, digit: false });
    else for (const text of form) signs.push({ text, digit: text === '0' });
  }
  // A key has no slash in front, and one between its parts, however many the template has.
  return signs.filter(
    (sign, index) =>
      sign.text !== '/' ||
      (index > 0 && signs.slice(0, index).some((one) => one.text !== '/') && signs[index - 1]?.text !== '/'),
  );
}

function prefixesMeet(one: WriteTarget, other: WriteTarget): boolean {
  const [left, right] = [trimmed(signsOf(one)), trimmed(signsOf(other))];
  return left.length === right.length && left.every((sign, index) => meet(sign, right[index] as Sign));
}

const trimmed = (signs: Sign[]): Sign[] => (signs.at(-1)?.text === '/' ? signs.slice(0, -1) : signs);

function meet(one: Sign, other: Sign): boolean {
  if (one.digit && other.digit) return true;
  if (one.digit) return /^\d$/.test(other.text);
  if (other.digit) return /^\d$/.test(one.text);
  return one.text === other.text;
}
