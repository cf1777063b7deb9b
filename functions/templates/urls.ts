import { input, NAMES_OF, transformation } from './parts.ts';

export const URL_MASKING = transformation({
  id: 'template-url-masking',
  name: 'URL parameter masking',
  description: 'Masks or removes the values of query parameters in URLs.',
  category: ['Transformation'],
  hog: `${NAMES_OF}fun maskedQuery(query, masked) {
  let kept := []
  for (let pair in splitByString('&', query)) {
    let name := splitByString('=', pair)[1]
    if (not has(masked, lower(tryDecodeURLComponent(name) ?? name))) {
      kept := arrayPushBack(kept, pair)
    } else if (notEmpty(inputs.maskWith)) {
      kept := arrayPushBack(kept, f'{name}={inputs.maskWith}')
    }
  }
  return arrayStringConcat(kept, '&')
}
fun maskedUrl(url, masked) {
  let hashAt := position(url, '#')
  let before := hashAt > 0 ? substring(url, 1, hashAt - 1) : url
  let after := hashAt > 0 ? substring(url, hashAt, length(url)) : ''
  // Pages that route in the fragment have their parameters there.
  let afterAt := position(after, '?')
  if (afterAt > 0) {
    let query := maskedQuery(substring(after, afterAt + 1, length(after)), masked)
    after := f'{substring(after, 1, afterAt - 1)}{query = '' ? '' : '?'}{query}'
  }
  let at := position(before, '?')
  if (at = 0) { return f'{before}{after}' }
  let query := maskedQuery(substring(before, at + 1, length(before)), masked)
  return f'{substring(before, 1, at - 1)}{query = '' ? '' : '?'}{query}{after}'
}
let changed := event
for (let property, parameters in inputs.urlProperties) {
  let masked := arrayMap(one -> lower(one), namesOf(parameters))
  if (typeof(changed.properties[property]) = 'string') {
    changed.properties[property] := maskedUrl(changed.properties[property], masked)
  }
  for (let of in ['$set', '$set_once']) {
    if (typeof(changed.properties[of][property]) = 'string') {
      changed.properties[of][property] := maskedUrl(changed.properties[of][property], masked)
    }
  }
}
return changed
`,
  inputs_schema: [
    input({
      key: 'urlProperties',
      type: 'dictionary',
      label: 'Properties and parameters',
      description: 'Each property with a URL, and the names of parameters in it, with commas between them.',
      default: Object.fromEntries(
        ['$current_url', '$referrer', '$initial_current_url', '$session_entry_url'].map((one) => [
          one,
          'email, password, token',
        ]),
      ),
      required: true,
    }),
    input({
      key: 'maskWith',
      label: 'Mask',
      description: 'Takes the place of the values. Empty: the parameters are removed.',
      default: '[REDACTED]',
    }),
  ],
});

export const URL_NORMALIZATION = transformation({
  id: 'template-url-normalization',
  name: 'URL normalization',
  description: 'Writes URLs of the same page in the same way.',
  category: ['Transformation'],
  hog: `${NAMES_OF}fun normalized(url) {
  let hashAt := position(url, '#')
  let fragment := hashAt > 0 ? substring(url, hashAt, length(url)) : ''
  let rest := hashAt > 0 ? substring(url, 1, hashAt - 1) : url
  let queryAt := position(rest, '?')
  let query := queryAt > 0 ? substring(rest, queryAt, length(rest)) : ''
  let base := queryAt > 0 ? substring(rest, 1, queryAt - 1) : rest
  let schemeAt := position(base, '://')
  let from := schemeAt > 0 ? schemeAt + 3 : 1
  let slash := schemeAt > 0 ? position(substring(base, from, length(base)), '/') : 1
  let origin := slash > 0 ? substring(base, 1, from + slash - 2) : base
  let path := slash > 0 ? substring(base, from + slash - 1, length(base)) : ''
  // Case never matters in a host.
  origin := lower(origin)
  if (inputs.lowercase) { path := lower(path) }
  if (inputs.trailingSlash) {
    while (length(path) > 1 and match(path, '/$')) { path := substring(path, 1, length(path) - 1) }
    if (path = '/' and origin != '') { path := '' }
  }
  if (inputs.query) { query := '' }
  if (inputs.fragment) { fragment := '' }
  if (inputs.identifiers) {
    let parts := arrayMap(
      one -> match(one, '^([0-9]+|[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12})$') ? ':id' : one,
      splitByString('/', path)
    )
    path := arrayStringConcat(parts, '/')
  }
  return f'{origin}{path}{query}{fragment}'
}
let changed := event
for (let name in namesOf(inputs.properties)) {
  if (typeof(changed.properties[name]) = 'string') {
    changed.properties[name] := normalized(changed.properties[name])
  }
}
return changed
`,
  inputs_schema: [
    input({
      key: 'properties',
      label: 'Properties',
      description: 'Names of event properties with URLs or paths, with commas between them.',
      default: '$current_url, $pathname',
      required: true,
    }),
    input({ key: 'lowercase', type: 'boolean', label: 'Write paths in lower case', default: true }),
    input({
      key: 'trailingSlash',
      type: 'boolean',
      label: 'Remove the slash at the end of paths',
      default: true,
    }),
    input({
      key: 'identifiers',
      type: 'boolean',
      label: 'Replace numbers and UUIDs in paths with :id',
      default: false,
    }),
    input({ key: 'query', type: 'boolean', label: 'Remove query parameters', default: false }),
    input({ key: 'fragment', type: 'boolean', label: 'Remove fragments', default: false }),
  ],
});
