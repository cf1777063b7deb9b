import {
  allOfEvent,
  allOfPerson,
  bearerToken,
  CHOSEN,
  choice,
  destination,
  dictionary,
  email,
  skipWithout,
  text,
} from './inputs.ts';

const account = bearerToken(
  'oauth',
  'Intercom account',
  'api.intercom.io (or api.eu.intercom.io, api.au.intercom.io)',
);
const region = choice(
  'region',
  'Region',
  { 'api.intercom.io': 'US', 'api.eu.intercom.io': 'Europe', 'api.au.intercom.io': 'Australia' },
  { description: 'Where the workspace is.' },
);

/** Hog that finds the contacts with the email address, and a function that asks Intercom. */
const FIND = `fun ask(method, path, body) {
  let answer := fetch(f'https://{inputs.region}{path}', {
    'method': method,
    'headers': {
      'Authorization': inputs.oauth.authorization,
      'Content-Type': 'application/json',
      'Accept': 'application/json',
      'Intercom-Version': '2.11'
    },
    'body': body
  })
  if (answer.status >= 300) {
    throw Error(f'Error from intercom api (status {answer.status}): {answer.body}')
  }
  return answer.body
}
let found := ask('POST', '/contacts/search', {
  'query': {'field': 'email', 'operator': '=', 'value': inputs.email}
})
`;

export const INTERCOM = destination('intercom', {
  id: 'template-intercom',
  name: 'Intercom',
  description: 'Creates contacts in Intercom, or updates those with the same email address.',
  category: ['Customer Success'],
  hog: `${CHOSEN}${skipWithout('inputs.email', 'email address')}${FIND}if (found.total_count > 1) {
  throw Error('Found multiple contacts with the same email address. Skipping...')
}
let contact := chosen(false, null, inputs.properties)
contact.email := inputs.email
contact.custom_attributes := chosen(inputs.include_all_properties, person.properties, inputs.customProperties)
if (found.total_count = 1) {
  ask('PUT', f'/contacts/{found.data[1].id}', contact)
} else {
  ask('POST', '/contacts', contact)
}
`,
  inputs_schema: [
    account,
    region,
    email,
    allOfPerson,
    dictionary('properties', 'Attributes', {
      description: 'Attributes that Intercom defines.',
      default: {
        name: "{trim(concat(person.properties.first_name ?? '', ' ', person.properties.last_name ?? ''))}",
        phone: '{person.properties.phone}',
        last_seen_at: '{toInt(toUnixTimestamp(toDateTime(event.timestamp)))}',
      },
    }),
    dictionary('customProperties', 'Custom attributes', {
      description: 'Attributes of your own. They must exist in Intercom.',
      default: {},
    }),
  ],
});

export const INTERCOM_EVENT = destination('intercom', {
  id: 'template-intercom-event',
  name: 'Intercom: event',
  description: 'Sends events about contacts to Intercom.',
  category: ['Customer Success'],
  hog: `${CHOSEN}${skipWithout('inputs.email', 'email address')}${FIND}if (found.total_count != 1) {
  throw Error('No unique contact found. Skipping...')
}
ask('POST', '/events', {
  'event_name': inputs.eventName,
  'created_at': toInt(inputs.eventTime),
  'email': inputs.email,
  'metadata': chosen(inputs.include_all_properties, event.properties, inputs.properties)
})
`,
  inputs_schema: [
    account,
    region,
    email,
    text('eventName', 'Name of the event', { default: '{event.event}', required: true }),
    text('eventTime', 'Time of the event', {
      description: 'In seconds since 1970.',
      default: '{toInt(toUnixTimestamp(toDateTime(event.timestamp)))}',
      required: true,
    }),
    allOfEvent,
    dictionary('properties', 'Metadata', {
      description: 'What is known of the event.',
      default: { revenue: '{event.properties.price}', currency: '{event.properties.currency}' },
    }),
  ],
});
