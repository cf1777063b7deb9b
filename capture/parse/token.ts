/** The events of one request name different project keys. */
export class InconsistentTokensError extends Error {
  override name = 'InconsistentTokensError';

  constructor() {
    super('batch submitted with inconsistent api_key values');
  }
}

type Fields = Record<string, unknown>;

/** The key that an event names: in its own fields, else in its properties. */
export function eventToken(event: Fields): unknown {
  const own = event.api_key ?? event.token ?? event.$token;
  if (own !== undefined && own !== null) return own;
  const { properties } = event;
  return typeof properties === 'object' && properties !== null ? (properties as Fields).token : undefined;
}
