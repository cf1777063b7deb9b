/** No usable project key: the request is refused with 401. */
export class TokenError extends Error {
  override name = 'TokenError';
}

const LONGEST = 64;
const PRINTABLE_ASCII = /^[\x20-\x7e]*$/;

/** The key without the white space around it, or a refusal that says what is wrong with it. */
export function checkToken(value: unknown): string {
  if (value === undefined || value === null) throw new TokenError('event submitted without an api_key');
  if (typeof value !== 'string') throw new TokenError('API key is not valid: not_a_string');
  const token = value.trim();
  const refuse = (reason: string) => new TokenError(`API key is not valid: ${reason}`);
  if (token === '') throw refuse('empty');
  if (token.length > LONGEST) throw refuse('too_long');
  if (token.includes('\u0000')) throw refuse('null_byte');
  if (!PRINTABLE_ASCII.test(token)) throw refuse('not_ascii');
  if (token.startsWith('phx_')) throw refuse('personal_api_key');
  return token;
}

type Fields = Record<string, unknown>;

/** The key that an event names: in its own fields, else in its properties. */
export function eventToken(event: Fields): unknown {
  const own = event.api_key ?? event.token ?? event.$token;
  if (own !== undefined && own !== null) return own;
  const { properties } = event;
  return typeof properties === 'object' && properties !== null ? (properties as Fields).token : undefined;
}
