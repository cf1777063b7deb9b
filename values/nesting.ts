const [QUOTE, BACKSLASH, COMMA] = [0x22, 0x5c, 0x2c];
const [OPEN_LIST, CLOSE_LIST, OPEN_OBJECT, CLOSE_OBJECT] = [0x5b, 0x5d, 0x7b, 0x7d];

/** Where one quotation mark of a text is escaped, others may be near. */
const NEAR = 64;

/** Returns where a text of JSON ends: the place of its second quotation mark. `begin` is the place after the first one. */
export function endOfText(json: string, begin: number): number {
  for (let at = begin; ; ) {
    const quote = json.indexOf('"', at);
    if (quote < 0) return json.length;
    let before = quote - 1;
    while (before >= at && json.charCodeAt(before) === BACKSLASH) before -= 1;
    // Two backslashes stand for one.
    if ((quote - before) % 2 === 1) return quote;
    at = quote + 1;
    for (const near = Math.min(at + NEAR, json.length); at < near; at += 1) {
      const code = json.charCodeAt(at);
      if (code === BACKSLASH) at += 1;
      else if (code === QUOTE) return at;
    }
  }
}

/** What JSON may have: levels, and lists, objects and elements of these. */
export interface JsonLimits {
  depth: number;
  values?: number;
}

/** Answers whether JSON has more than it may. The text need not be valid. It costs much less than to read it. */
export function exceeds(
  json: string,
  { depth: deepest, values: most = Number.POSITIVE_INFINITY }: JsonLimits,
): boolean {
  // Each level takes a letter to open it, and each value another one.
  if (json.length <= deepest && json.length <= most) return false;
  let depth = 0;
  let values = 0;
  for (let at = 0; at < json.length; at += 1) {
    const code = json.charCodeAt(at);
    if (code === QUOTE) at = endOfText(json, at + 1);
    else if (code === COMMA) {
      values += 1;
      if (values > most) return true;
    } else if (code === OPEN_LIST || code === OPEN_OBJECT) {
      depth += 1;
      values += 1;
      if (depth > deepest || values > most) return true;
    } else if (code === CLOSE_LIST || code === CLOSE_OBJECT) depth -= 1;
  }
  return false;
}
