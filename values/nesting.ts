const [QUOTE, BACKSLASH, COMMA] = [0x22, 0x5c, 0x2c];
const [OPEN_LIST, CLOSE_LIST, OPEN_OBJECT, CLOSE_OBJECT] = [0x5b, 0x5d, 0x7b, 0x7d];

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
  let inText = false;
  for (let at = 0; at < json.length; at += 1) {
    const code = json.charCodeAt(at);
    if (inText) {
      if (code === BACKSLASH) at += 1;
      else if (code === QUOTE) inText = false;
    } else if (code === QUOTE) inText = true;
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
