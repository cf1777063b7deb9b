import { input, NAMES_OF, transformation } from './parts.ts';

const names = 'Names of event properties, with commas between them. Dots lead into dictionaries: user.email.';

/** A function of programs that replaces the value at a path by what another function returns. */
const CHANGE_AT = `fun changeAt(values, path, change) {
  // A property may have dots in its name.
  let name := arrayStringConcat(path, '.')
  if (typeof(values) != 'object') { return values }
  if (has(keys(values), name)) {
    if (values[name] != null) { values[name] := change(values[name]) }
    return values
  }
  if (length(path) > 1 and has(keys(values), path[1])) {
    let rest := []
    for (let index := 2; index <= length(path); index := index + 1) { rest := arrayPushBack(rest, path[index]) }
    values[path[1]] := changeAt(values[path[1]], rest, change)
  }
  return values
}
`;

const HASH = `fun hashed(value) {
  return sha256Hex(f'{typeof(value) = 'string' ? value : jsonStringify(value)}{inputs.salt ?? ''}')
}
let changed := event
for (let name in namesOf(inputs.propertiesToHash)) {
  changed.properties := changeAt(changed.properties, splitByString('.', name), value -> hashed(value))
}
if (inputs.hashDistinctId and notEmpty(event.distinct_id)) {
  changed.distinct_id := hashed(event.distinct_id)
}
return changed
`;
const propertiesToHash = input({
  key: 'propertiesToHash',
  label: 'Properties to hash',
  description: names,
  required: true,
});
const hashDistinctId = input({
  key: 'hashDistinctId',
  type: 'boolean',
  label: 'Hash the distinct_id',
  description:
    'All events of a person must be hashed in the same way, or else they belong to several persons.',
  default: false,
});
const salt = input({
  key: 'salt',
  label: 'Salt',
  description: 'Is put behind each value before it is hashed. Without a salt, short values can be guessed.',
  secret: true,
  templating: false,
});

export const PII_HASHING = transformation({
  id: 'template-pii-hashing',
  protects: true,
  name: 'Hash personal data',
  description:
    'Replaces properties that contain personal data with their SHA-256 hashes, also in $set and $set_once.',
  category: ['Transformation'],
  hog: `${NAMES_OF}${CHANGE_AT}${HASH.replace(
    "splitByString('.', name), value -> hashed(value))\n",
    `splitByString('.', name), value -> hashed(value))
  for (let of in ['$set', '$set_once']) {
    changed.properties := changeAt(changed.properties, arrayPushFront(splitByString('.', name), of), value -> hashed(value))
  }
`,
  )}`,
  inputs_schema: [{ ...propertiesToHash, default: 'email, $email, phone, name' }, hashDistinctId, salt],
});

export const HASH_PROPERTIES = transformation({
  id: 'template-hash-properties',
  protects: true,
  name: 'Hash properties',
  description: 'Replaces the named properties, or the distinct_id, with their SHA-256 hashes.',
  category: ['Transformation'],
  hog: `${NAMES_OF}${CHANGE_AT}fun hashed(value) {
  return empty(value) ? value : sha256Hex(f'{typeof(value) = 'string' ? value : jsonStringify(value)}{inputs.salt ?? ''}')
}
let changed := event
for (let name in namesOf(inputs.privateFields)) {
  if (name = 'distinct_id') { changed.distinct_id := hashed(event.distinct_id) }
  let path := splitByString('.', name)
  changed.properties := changeAt(changed.properties, path, (value) -> hashed(value))
  if (inputs.includeSetProperties) {
    for (let of in ['$set', '$set_once']) {
      changed.properties := changeAt(changed.properties, arrayPushFront(path, of), value -> hashed(value))
    }
  }
}
return changed
`,
  inputs_schema: [
    { ...salt, required: true, description: 'A secret that is put behind each value before it is hashed.' },
    input({
      key: 'privateFields',
      label: 'Fields to hash',
      description: `${names} The name distinct_id also means that of the event.`,
      default: 'distinct_id,name,userid,email',
      required: true,
    }),
    input({
      key: 'includeSetProperties',
      type: 'boolean',
      label: 'Hash properties of persons too',
      description: 'Whether the fields are hashed in $set and $set_once too.',
      default: true,
    }),
  ],
});

export const FILTER_PROPERTIES = transformation({
  id: 'template-filter-properties',
  protects: true,
  name: 'Filter properties',
  description: 'Removes the named properties from events.',
  category: ['Transformation'],
  hog: `${NAMES_OF}fun without(values, path) {
  if (typeof(values) != 'object') { return values }
  let name := arrayStringConcat(path, '.')
  let kept := {}
  for (let key, value in values) {
    if (key != name) { kept[key] := value }
  }
  if (length(path) > 1 and has(keys(kept), path[1])) {
    let rest := []
    for (let index := 2; index <= length(path); index := index + 1) { rest := arrayPushBack(rest, path[index]) }
    kept[path[1]] := without(kept[path[1]], rest)
  }
  return kept
}
let changed := event
let present := keys(event.properties)
for (let name in namesOf(inputs.propertiesToFilter)) {
  let path := position(name, '.') > 0 ? splitByString('.', name) : [name]
  if (has(present, name) or has(present, path[1])) {
    changed.properties := without(changed.properties, path)
  }
}
return changed
`,
  inputs_schema: [
    input({
      key: 'propertiesToFilter',
      label: 'Properties to remove',
      description: names,
      required: true,
    }),
  ],
});
