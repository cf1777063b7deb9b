const STRICT = /^[A-Za-z0-9+/]+={0,2}$/;
const LENIENT = /^[A-Za-z0-9+/_-]+={0,2}$/;
/** Most bodies are no base64, which their first letters show. */
const SAMPLE = 64;

/** Whether all of it is base64, which JSON of an event never is: that starts with a bracket. */
export function isBase64(bytes: Buffer): boolean {
  if (bytes.length < 4 || bytes.length % 4 !== 0) return false;
  if (!STRICT.test(bytes.toString('latin1', 0, SAMPLE))) return false;
  return STRICT.test(bytes.toString('latin1'));
}

/**
 * Base64 that is declared to be: also with the URL alphabet, without padding, and with spaces where a form turned
 * plus signs into them. Undefined when it is not base64 at all.
 */
export function decodeBase64(bytes: Buffer): Buffer | undefined {
  const text = bytes
    .toString('latin1')
    .trim()
    .replaceAll(' ', '+')
    .replace(/[\r\n]+/g, '');
  return LENIENT.test(text) ? Buffer.from(text, 'base64') : undefined;
}
