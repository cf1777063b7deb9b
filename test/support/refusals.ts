/** The bodies of refusals, as clients know them. */
const body = (type: string, code: string, detail: string, attr: string | null = null) => ({
  type,
  code,
  detail,
  attr,
});

export const refusals = {
  notAuthenticated: body(
    'authentication_error',
    'not_authenticated',
    'Authentication credentials were not provided.',
  ),
  badKey: (place = 'request Authorization header') =>
    body('authentication_error', 'authentication_failed', `Personal API key found in ${place} is invalid.`),
  scope: (scope: string) =>
    body('authentication_error', 'permission_denied', `API key missing required scope '${scope}'`),
  denied: (detail: string) => body('authentication_error', 'permission_denied', detail),
  level: body('authentication_error', 'permission_denied', 'Your organization access level is insufficient.'),
  notFound: (detail = 'Not found.') => body('invalid_request', 'not_found', detail),
  field: (attr: string | null, code: string, detail: string) => body('validation_error', code, detail, attr),
  malformed: (detail: string) => body('invalid_request', 'parse_error', detail),
  parse: (reason: string) => body('invalid_request', 'parse_error', `JSON parse error - ${reason}`),
};
