// Transformations under the names and with the inputs of older plugins.
import { input, NAMES_OF, transformation } from './parts.ts';
import { GEOIP } from './transformations.ts';

const text = (key: string, label: string, description: string, value: string, more: object = {}) =>
  input({ key, label, description, default: value, templating: false, ...more });
const yesNo = (key: string, label: string, description: string, choices = ['true', 'false']) =>
  input({
    ...{ key, label, description, type: 'choice', templating: false },
    choices: choices.map((value) => ({ label: value, value })),
    default: choices.at(-1),
  });

export const GEOIP_PLUGIN = transformation({
  id: 'plugin-posthog-plugin-geoip',
  name: 'GeoIP (older)',
  description: 'The same as GeoIP, under the name of the older plugin.',
  category: ['Transformation'],
  hog: GEOIP.hog,
  inputs_schema: [],
});

export const LANGUAGE_OF_URL = transformation({
  id: 'plugin-language-url-splitter-app',
  name: 'Language of the URL (older)',
  description:
    'Takes the language out of $pathname, such as /de/cart, and stores it as a property of its own.',
  category: ['Transformation'],
  // Patterns of the older plugin look ahead for the end of a part, which RE2 cannot. At the end of a path it is the same.
  hog: `if (typeof(event.properties.$pathname) != 'string') { return event }
fun plain(pattern) { return replaceAll(pattern, '(?=', '(?:') }
let path := event.properties.$pathname
let pattern := plain(inputs.pattern)
if (not match(path, pattern)) { return event }
let group := toString(inputs.matchGroup)
if (not has(['0', '1'], group)) { throw Error('The match group must be 0 or 1.') }
let changed := event
changed.properties[inputs.property] := extractRegex(path, group = '0' ? f'({pattern})' : pattern)
if (notEmpty(inputs.replacePattern) and match(path, plain(inputs.replacePattern))) {
  let replaced := plain(inputs.replacePattern)
  let before := extractRegex(path, f'^((?s:.*?)){replaceOne(replaced, '^', '')}')
  let found := extractRegex(path, f'({replaced})')
  let after := substring(path, length(before) + length(found) + 1, length(path))
  changed.properties[inputs.replaceKey] := f'{before}{inputs.replaceValue}{after}'
}
return changed
`,
  inputs_schema: [
    text('pattern', 'Pattern', 'A regular expression of RE2 that finds the language.', '^/([a-z]{2})(/|$)', {
      required: true,
    }),
    text('matchGroup', 'Group', '1: what the first brackets of the pattern find. 0: all of it.', '1', {
      required: true,
    }),
    text('property', 'Property', 'The property that gets the language.', 'locale', { required: true }),
    text(
      'replacePattern',
      'Pattern to replace',
      'What is replaced in the path. Empty: the path stays as it is.',
      '^(/[a-z]{2})(/|$)',
    ),
    text(
      'replaceKey',
      'Property for the path',
      'The property that gets the path without the language.',
      '$pathname',
      {
        required: true,
      },
    ),
    text('replaceValue', 'Replacement', 'What takes the place of what is replaced.', '/'),
  ],
});

export const URL_PARAMETERS = transformation({
  id: 'plugin-posthog-app-url-parameters-to-event-properties',
  name: 'URL parameters to properties (older)',
  description: 'Makes properties of the query parameters of $current_url.',
  category: ['Transformation'],
  hog: `${NAMES_OF}if (typeof(event.properties.$current_url) != 'string') { return event }
fun plain(text) {
  let spaced := replaceAll(text, '+', ' ')
  return tryDecodeURLComponent(spaced) ?? spaced
}
let url := splitByString('#', event.properties.$current_url)[1]
let at := position(url, '?')
if (at = 0) { return event }
let names := namesOf(inputs.parameters)
for (let name, property in inputs.customNames ?? {}) {
  if (trim(name) != '' and not has(names, trim(name))) { names := arrayPushBack(names, trim(name)) }
}
let ignoresCase := inputs.ignoreCase = 'true'
let found := {}
for (let pair in splitByString('&', substring(url, at + 1, length(url)))) {
  let equals := position(pair, '=')
  let key := plain(equals = 0 ? pair : substring(pair, 1, equals - 1))
  let value := equals = 0 ? '' : plain(substring(pair, equals + 1, length(pair)))
  let known := f'.{ignoresCase ? lower(key) : key}'
  found[known] := arrayPushBack(found[known] ?? [], value)
}
let changed := event
for (let name in names) {
  let values := found[f'.{ignoresCase ? lower(name) : name}']
  if (notEmpty(values)) {
    let own := inputs.customNames[name]
    let property := notEmpty(own) ? own : f'{inputs.prefix}{name}{inputs.suffix}'
    let value := length(values) = 1 and inputs.alwaysJson != 'true' ? values[1] : jsonStringify(values)
    changed.properties[property] := value
    if (inputs.setAsUserProperties = 'true') {
      changed.properties['$set'] := changed.properties['$set'] ?? {}
      changed.properties['$set'][property] := value
    }
    if (inputs.setAsInitialUserProperties = 'true') {
      changed.properties['$set_once'] := changed.properties['$set_once'] ?? {}
      changed.properties['$set_once'][f'initial_{property}'] := value
    }
  }
}
return changed
`,
  inputs_schema: [
    text('parameters', 'Parameters', 'Names of query parameters, with commas between them.', ''),
    input({
      key: 'customNames',
      type: 'dictionary',
      label: 'Names of their own',
      description:
        'Parameters, and the names of the properties that get them. Prefix and suffix do not apply.',
      default: {},
      templating: false,
    }),
    text('prefix', 'Prefix', 'What names of properties begin with.', ''),
    text('suffix', 'Suffix', 'What names of properties end with.', ''),
    yesNo('ignoreCase', 'Ignore case', 'Whether followerId also finds FollowerID.'),
    yesNo('setAsUserProperties', 'Also set on the person', 'Whether the person gets the property too.'),
    yesNo(
      'setAsInitialUserProperties',
      'Also set once on the person',
      'Whether the person keeps the first value, as initial_ and the name of the property.',
    ),
    yesNo('alwaysJson', 'Always a list', 'Whether a single value is stored as a list in JSON too.'),
  ],
});

export const FILTER_OUT = transformation({
  id: 'plugin-posthog-filter-out-plugin',
  name: 'Filter out events (older)',
  description:
    'Keeps the events whose properties meet conditions, and drops others and those with certain names.',
  category: ['Transformation'],
  hog: `${NAMES_OF}fun isMet(type, operator, value, wanted) {
  if (type = 'string') {
    let text := toString(value)
    if (operator = 'is') { return text = wanted }
    if (operator = 'is_not') { return text != wanted }
    if (operator = 'contains') { return position(text, wanted) > 0 }
    if (operator = 'not_contains') { return position(text, wanted) = 0 }
    if (operator = 'regex') { return match(text, wanted) }
    if (operator = 'not_regex') { return not match(text, wanted) }
  } else if (type = 'number') {
    if (operator = 'eq') { return value = wanted }
    if (operator = 'neq') { return value != wanted }
    if (typeof(value) not in ['integer', 'float']) { return false }
    if (operator = 'gt') { return value > wanted }
    if (operator = 'lt') { return value < wanted }
    if (operator = 'gte') { return value >= wanted }
    if (operator = 'lte') { return value <= wanted }
  } else if (type = 'boolean') {
    if (operator = 'is') { return value = wanted }
    if (operator = 'is_not') { return value != wanted }
  }
  throw Error(f'A condition cannot have the type {type} with the operator {operator}.')
}
if (has(namesOf(inputs.eventsToDrop), event.event)) { return null }
if (empty(inputs.filters)) { return event }
let groups := typeof(inputs.filters) = 'string' ? jsonParse(inputs.filters) : inputs.filters
if (empty(groups)) { return event }
// A list of conditions is one group. Of several groups, one is enough.
if (typeof(groups[1]) != 'array') { groups := [groups] }
for (let group in groups) {
  let isAll := true
  for (let one in group) {
    let value := event.properties[one.property]
    let isGood := value = null ? inputs.keepUndefinedProperties = 'Yes' : isMet(one.type, one.operator, value, one.value)
    if (not isGood) { isAll := false }
  }
  if (isAll) { return event }
}
return null
`,
  inputs_schema: [
    input({
      key: 'filters',
      label: 'Conditions',
      description:
        'A list in JSON: [{"property": "plan", "type": "string", "operator": "is", "value": "pro"}]. Types and operators: string ' +
        '(is, is_not, contains, not_contains, regex, not_regex), number (eq, neq, gt, lt, gte, lte), boolean (is, is_not). A list ' +
        'of lists keeps events that meet one of them. Empty: all are kept.',
      templating: false,
    }),
    input({
      key: 'eventsToDrop',
      label: 'Events to drop',
      description: 'Names of events, with commas between them.',
      templating: false,
    }),
    yesNo(
      'keepUndefinedProperties',
      'Without the property',
      'Whether events that lack a property meet its condition.',
      ['Yes', 'No'],
    ),
  ],
});
