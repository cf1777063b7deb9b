import { bearerToken, destination, flag, text } from './inputs.ts';
import { input } from './parts.ts';

const common = [
  bearerToken('oauth', 'Salesforce account', 'the host of the instance'),
  text('instance_url', 'Address of the instance', {
    description: 'Such as https://shop.my.salesforce.com, without a path.',
    required: true,
  }),
];
const properties = [
  flag('include_all_event_properties', 'Include all properties of the event', {
    description: 'The fields below win over them.',
  }),
  flag('include_all_person_properties', 'Include all properties of the person', {
    description: 'They win over those of the event, and the fields below win over them.',
  }),
];
const fields = (given: object) =>
  input({
    key: 'properties',
    type: 'json',
    label: 'Fields',
    description: 'Fields of the object and their values.',
    default: given,
    required: true,
  });

/** Hog that makes a request about the object at the path. */
const REQUEST = (method: 'POST' | 'PATCH', least: 1 | 2) => `let path := trim(inputs.path)
let segments := splitByString('/', path)
if (arrayExists(one -> trim(one) = '', segments)) {
  throw Error(f'Salesforce object path \\'{path}\\' is missing a value. A property mapped into the path was empty when this ran. Check that it is set before this step.')
}
${
  least > 1
    ? `if (length(segments) < 2) {
  throw Error(f'Salesforce object path \\'{path}\\' has no record identifier. Use \\'Object/RecordId\\' to update by record ID, or \\'Object/ExternalIdField/Value\\' to update by external ID.')
}
`
    : ''
}if (not match(inputs.instance_url, '^https://[A-Za-z0-9.-]+/?$')) {
  throw Error('The address of the instance must be https:// and a host.')
}
let host := replaceAll(replaceOne(inputs.instance_url, 'https://', ''), '/', '')
let encoded := arrayStringConcat(arrayMap(one -> encodeURLComponent(one), segments), '/')
let fields := {}
fun add(values) {
  for (let key, value in values ?? {}) { fields[key] := value }
}
if (inputs.include_all_event_properties) { add(event.properties) }
if (inputs.include_all_person_properties) { add(person.properties) }
add(inputs.properties)
let answer := fetch(f'https://{host}/services/data/v61.0/sobjects/{encoded}', {
  'method': '${method}',
  'headers': {'Authorization': inputs.oauth.authorization, 'Content-Type': 'application/json'},
  'body': fields
})
if (answer.status >= 300) {
  throw Error(f'Salesforce request to \\'{path}\\' failed with status {answer.status}: {answer.body}')
}
`;

export const SALESFORCE_CREATE = destination('salesforce', {
  id: 'template-salesforce-create',
  name: 'Salesforce: create',
  description: 'Creates objects in Salesforce.',
  category: ['CRM'],
  hog: `${REQUEST('POST', 1)}return answer.body
`,
  inputs_schema: [
    ...common,
    text('path', 'Object', { description: 'What is created.', default: 'Contact', required: true }),
    ...properties,
    fields({ email: '{person.properties.email}' }),
  ],
});

export const SALESFORCE_UPDATE = destination('salesforce', {
  id: 'template-salesforce-update',
  name: 'Salesforce: update',
  description: 'Updates objects in Salesforce. An update by an external ID creates what does not exist.',
  category: ['CRM'],
  hog: `${REQUEST('PATCH', 2)}return empty(answer.body) ? {'success': true} : answer.body
`,
  inputs_schema: [
    ...common,
    text('path', 'Object', {
      description: 'The object and its ID: Lead/ID, or Lead/Email/VALUE by a field that is an external ID.',
      default: 'Lead/Email/{person.properties.email}',
      required: true,
    }),
    ...properties,
    fields({ email: '{person.properties.email}', browser: '{event.properties.$browser}' }),
  ],
});
