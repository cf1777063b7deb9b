import { input, NAMES_OF, transformation } from './parts.ts';

export const URL_MASKING = transformation({
  id: 'template-url-masking',
  protects: true,
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
  for (let values in [changed.properties, changed.properties['$set'], changed.properties['$set_once']]) {
    let url := values[property]
    // A URL without a question mark has no parameters.
    if (typeof(url) = 'string' and position(url, '?') > 0) {
      values[property] := maskedUrl(url, arrayMap(one -> lower(one), namesOf(parameters)))
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
  description: 'Writes URLs of the same kind of page in the same way: IDs in paths become :id.',
  category: ['Transformation'],
  hog: `${NAMES_OF}fun replaced(text) {
  return notEmpty(inputs.regex) and match(text, inputs.regex) ? (inputs.replaceWith ?? ':id') : text
}
fun normalizedPath(path) {
  let text := arrayStringConcat(arrayMap(one -> one = '' ? one : replaced(one), splitByString('/', path)), '/')
  if (inputs.lowercase) { text := lower(text) }
  if (inputs.trailingSlash) {
    while (length(text) > 1 and match(text, '/$')) { text := substring(text, 1, length(text) - 1) }
  }
  return text
}
fun normalizedQuery(query) {
  let pairs := []
  for (let pair in splitByString('&', query)) {
    let parts := splitByString('=', pair, 2)
    if (length(parts) > 1 and notEmpty(parts[2])) { pairs := arrayPushBack(pairs, f'{parts[1]}={replaced(parts[2])}') }
    else if (pair != '') { pairs := arrayPushBack(pairs, pair) }
  }
  return arrayStringConcat(pairs, '&')
}
fun normalized(url) {
  let hashAt := position(url, '#')
  let fragment := hashAt > 0 ? substring(url, hashAt + 1, length(url)) : ''
  let rest := hashAt > 0 ? substring(url, 1, hashAt - 1) : url
  let queryAt := position(rest, '?')
  let query := queryAt > 0 ? substring(rest, queryAt + 1, length(rest)) : ''
  let base := queryAt > 0 ? substring(rest, 1, queryAt - 1) : rest
  let schemeAt := position(base, '://')
  let from := schemeAt > 0 ? schemeAt + 3 : 1
  let slash := position(substring(base, from, length(base)), '/')
  let origin := base
  let path := ''
  if (slash > 0) {
    origin := substring(base, 1, from + slash - 2)
    path := normalizedPath(substring(base, from + slash - 1, length(base)))
  }
  // Case never matters in a host.
  if (schemeAt > 0) { origin := lower(origin) }
  query := inputs.removeQueryString ?? true ? '' : normalizedQuery(query)
  // Pages that route in the fragment have their paths there.
  fragment := inputs.removeHash ?? true ? '' : normalizedPath(splitByString('?', fragment)[1])
  return f'{origin}{path}{query = '' ? '' : '?'}{query}{fragment = '' ? '' : '#'}{fragment}'
}
let changed := event
for (let name in namesOf(inputs.urlProperties)) {
  if (typeof(changed.properties[name]) = 'string') {
    changed.properties[name] := normalized(changed.properties[name])
  }
  for (let of in ['$set', '$set_once']) {
    if (typeof(changed.properties[of][name]) = 'string') {
      changed.properties[of][name] := normalized(changed.properties[of][name])
    }
  }
}
return changed
`,
  inputs_schema: [
    input({
      key: 'urlProperties',
      label: 'Properties',
      description: 'Names of properties with URLs or paths, with commas between them.',
      default: '$current_url, $referrer, $referring_domain',
      required: true,
    }),
    input({
      key: 'removeHash',
      type: 'boolean',
      label: 'Remove fragments',
      description: 'Whether what stands behind # is removed.',
      default: true,
    }),
    input({
      key: 'removeQueryString',
      type: 'boolean',
      label: 'Remove query parameters',
      description: 'Whether what stands behind ? is removed.',
      default: true,
    }),
    input({
      key: 'replaceWith',
      label: 'Replacement',
      description: 'Takes the place of IDs in paths and parameters.',
      default: ':id',
    }),
    input({
      key: 'regex',
      label: 'Pattern of IDs',
      description: 'Parts of paths and values of parameters that match this regular expression are IDs.',
      default: '^([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|[A-Z0-9]{3,})$',
      templating: false,
    }),
    input({ key: 'lowercase', type: 'boolean', label: 'Write paths in lower case', default: false }),
    input({
      key: 'trailingSlash',
      type: 'boolean',
      label: 'Remove the slash at the end of paths',
      default: false,
    }),
  ],
});
