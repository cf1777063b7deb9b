import {
  allOfEvent,
  CHOSEN,
  destination,
  dictionary,
  email,
  expects404,
  failWith,
  integration,
  skipWithout,
  text,
} from './inputs.ts';

const account = (scopes: string) =>
  integration('hubspot', 'oauth', 'HubSpot account', `A private app of HubSpot with the scopes ${scopes}.`);

const HEADERS = `let headers := {'Authorization': inputs.oauth.authorization, 'Content-Type': 'application/json'}
`;
// HubSpot takes no lists and no dictionaries.
const FLAT = `fun flat(values) {
  let kept := {}
  for (let key, value in values) {
    kept[key] := typeof(value) in ['object', 'array', 'tuple'] ? jsonStringify(value) : value
  }
  return kept
}
`;

export const HUBSPOT = destination('hubspot', {
  id: 'template-hubspot',
  name: 'HubSpot',
  description: 'Creates contacts in HubSpot, or updates those with the same email address.',
  category: ['CRM'],
  // HubSpot answers 207 if it takes the request but refuses the contact.
  hog: `${CHOSEN}${FLAT}${HEADERS}${skipWithout('inputs.email', 'email address')}let properties := flat(chosen(false, null, inputs.properties))
properties.email := inputs.email
let answer := fetch('https://api.hubapi.com/crm/v3/objects/contacts/batch/upsert', {
  'method': 'POST',
  'headers': headers,
  'body': {'inputs': [{'idProperty': 'email', 'id': inputs.email, 'properties': properties}]}
})
if (answer.status = 207 or answer.status >= 300) {
  throw Error(f'Error updating contact {inputs.email} (status {answer.status}): {answer.body}')
}
`,
  inputs_schema: [
    account('crm.objects.contacts.write'),
    email,
    dictionary('properties', 'Properties', {
      description: 'Properties of the contact. They must exist in HubSpot.',
      default: {
        firstname: '{person.properties.first_name}',
        lastname: '{person.properties.last_name}',
        company: '{person.properties.company}',
        phone: '{person.properties.phone}',
        website: '{person.properties.website}',
      },
    }),
  ],
});

export const HUBSPOT_COMPANY = destination('hubspot', {
  id: 'template-hubspot-company',
  name: 'HubSpot: company',
  description:
    'Creates companies in HubSpot, or updates them. A property of its own, posthog_group_id, tells them apart.',
  category: ['CRM'],
  hog: `${CHOSEN}${FLAT}${HEADERS}${skipWithout('inputs.companyId', 'company ID')}let properties := flat(chosen(false, null, inputs.properties))
properties.posthog_group_id := toString(inputs.companyId)
let companies := 'https://api.hubapi.com/crm/v3/objects/companies'
let answer := fetch(f'{companies}/{encodeURLComponent(properties.posthog_group_id)}?idProperty=posthog_group_id', {
  'method': 'PATCH',
  'headers': headers,
  'body': {'properties': properties}
})
if (answer.status = 404) {
  // Neither the company nor perhaps the property exists. 409 says that the property does.
  let made := fetch('https://api.hubapi.com/crm/v3/properties/companies', {
    'method': 'POST',
    'headers': headers,
    'body': {
      'name': 'posthog_group_id',
      'label': 'Group ID',
      'description': 'The key of the group that is this company.',
      'groupName': 'companyinformation',
      'type': 'string',
      'fieldType': 'text',
      'hasUniqueValue': true
    }
  })
  if (made.status >= 300 and made.status != 409) {
    throw Error(f'Error creating unique posthog id property (status {made.status}): {made.body}')
  }
  answer := fetch(companies, {'method': 'POST', 'headers': headers, 'body': {'properties': properties}})
  if (answer.status >= 300) {
    throw Error(f'Error creating company {inputs.companyId} (status {answer.status}): {answer.body}')
  }
}
if (answer.status >= 300) {
  throw Error(f'Error updating company {inputs.companyId} (status {answer.status}): {answer.body}')
}
`,
  inputs_schema: [
    account('crm.objects.companies.write, crm.objects.companies.read and crm.schemas.companies.write'),
    { ...expects404, default: [404, 409] },
    text('companyId', 'Company ID', {
      description: 'The key by which you know the company. Events without it are skipped.',
      default: '{groups.company.id}',
      required: true,
    }),
    dictionary('properties', 'Properties', {
      description: 'Properties of the company. They must exist in HubSpot.',
      default: {
        name: '{groups.company.properties.name}',
        domain: '{groups.company.properties.domain}',
        description: '{groups.company.properties.description}',
      },
      required: true,
    }),
  ],
});

export const HUBSPOT_EVENT = destination('hubspot', {
  id: 'template-hubspot-event',
  name: 'HubSpot: custom event',
  description: 'Sends custom events to HubSpot. It defines events and properties that HubSpot does not know.',
  category: ['CRM'],
  // A run has five requests: one finds the definition, one sends the event.
  hog: `${CHOSEN}${FLAT}${HEADERS}${skipWithout('inputs.email', 'email address')}let name := replaceAll(replaceAll(lower(trim(inputs.eventName)), '$', ''), ' ', '_')
if (not match(name, '^[a-z][a-z0-9_-]*$')) {
  throw Error(f'Event name must start with a letter and can only contain lowercase letters, numbers, underscores, and hyphens. Not sending event: {inputs.eventName}')
}
let properties := flat(chosen(inputs.include_all_properties, event.properties, inputs.properties))
fun typeNameOf(value) {
  if (typeof(value) in ['integer', 'float']) { return 'number' }
  if (typeof(value) = 'boolean') { return 'enumeration' }
  return match(toString(value), '^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}[.][0-9]{3}Z$') ? 'datetime' : 'string'
}
fun definitionOf(key, value) {
  let definition := {'name': key, 'label': key, 'type': typeNameOf(value)}
  if (definition.type = 'enumeration') {
    definition.options := [
      {'label': 'true', 'value': 'true', 'hidden': false, 'displayOrder': 1},
      {'label': 'false', 'value': 'false', 'hidden': false, 'displayOrder': 2}
    ]
  }
  return definition
}
fun settled(answer) {
  if (answer.status >= 300) { throw Error(f'Error from api.hubapi.com api: {answer.status}: {answer.body}') }
  return answer.body
}
let definitions := 'https://api.hubapi.com/events/v3/event-definitions'
let fullName := name
// A full name is that of an event that exists.
if (not match(name, '^pe[0-9]+_')) {
  let found := fetch(f'{definitions}/{name}/?includeProperties=true', {'method': 'GET', 'headers': headers})
  if (found.status = 404) {
    let made := []
    for (let key, value in properties) { made := arrayPushBack(made, definitionOf(key, value)) }
    fullName := settled(fetch(definitions, {
      'method': 'POST',
      'headers': headers,
      'body': {'label': name, 'name': name, 'primaryObject': 'CONTACT', 'propertyDefinitions': made}
    })).fullyQualifiedName
  } else {
    let definition := settled(found)
    fullName := definition.fullyQualifiedName
    let known := {}
    for (let one in definition.properties ?? []) { known[one.name] := one.type }
    let wrong := []
    let missing := []
    for (let key, value in properties) {
      if (known[key] = null) { missing := arrayPushBack(missing, key) }
      else if (known[key] != typeNameOf(value)) { wrong := arrayPushBack(wrong, {'key': key, 'value': value}) }
    }
    if (notEmpty(wrong)) {
      throw Error(f'Property type mismatch for the following properties: {wrong}. Not sending event.')
    }
    if (length(missing) > 3) {
      throw Error(f'HubSpot does not know these properties of the event {name}: {arrayStringConcat(missing, ', ')}. Define them there.')
    }
    for (let key in missing) {
      settled(fetch(f'{definitions}/{name}/property', {
        'method': 'POST',
        'headers': headers,
        'body': definitionOf(key, properties[key])
      }))
    }
  }
}
let answer := fetch('https://api.hubapi.com/events/v3/send', {
  'method': 'POST',
  'headers': headers,
  'body': {
    'eventName': fullName,
    'email': inputs.email,
    'occurredAt': event.timestamp,
    'uuid': event.uuid,
    'properties': properties
  }
})
${failWith('Error from api.hubapi.com api')}`,
  inputs_schema: [
    account('analytics.behavioral_events.send and behavioral_events.event_definitions.read_write'),
    expects404,
    text('eventName', 'Name of the event', {
      description:
        'Becomes lower case; spaces become _. A full name of HubSpot, such as pe123456_order_paid, is used as it is.',
      default: '{event.event}',
      required: true,
    }),
    email,
    allOfEvent,
    dictionary('properties', 'Properties', {
      description: 'Properties of the event. A run can define three that HubSpot does not know.',
      default: { price: '{event.properties.price}', currency: '{event.properties.currency}' },
    }),
  ],
});
