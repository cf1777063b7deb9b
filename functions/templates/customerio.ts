import {
  CHOSEN,
  choice,
  destination,
  dictionary,
  failWith,
  flag,
  integration,
  secret,
  text,
} from './inputs.ts';

export const CUSTOMERIO = destination('customerio', {
  id: 'template-customerio',
  name: 'Customer.io',
  description: 'Creates and updates people in Customer.io, and sends events about them.',
  category: ['Email Marketing'],
  // Version 2 of the Track API has one path for people and their events. Customer.io cuts texts at 1000 characters.
  hog: `${CHOSEN}if (empty(inputs.identifier_key) or empty(inputs.identifier_value)) {
  print('The event has no identifier of a person. It is skipped.')
  return
}
let authorization := inputs.customerio.authorization
if (empty(authorization)) {
  if (empty(inputs.site_id) or empty(inputs.token)) {
    throw Error('Connect Customer.io, or give the site ID and the API key.')
  }
  authorization := f'Basic {base64Encode(f'{inputs.site_id}:{inputs.token}')}'
}
let action := inputs.action
let name := event.event
if (action = 'automatic') {
  if (event.event in ['$identify', '$set']) {
    action := 'identify'
  } else if (event.event = '$pageview') {
    action := 'page'
    name := event.properties.$current_url
  } else if (event.event = '$screen') {
    action := 'screen'
    name := event.properties.$screen_name
  } else {
    action := 'event'
  }
}
let isAboutPerson := action in ['identify', 'delete']
let attributes := {}
for (let key, value in chosen(inputs.include_all_properties, isAboutPerson ? person?.properties : event.properties, inputs.attributes)) {
  attributes[key] := typeof(value) = 'string' ? substring(value, 1, 1000) : value
}
let body := {
  'type': 'person',
  'identifiers': { inputs.identifier_key: inputs.identifier_value },
  'action': action
}
if (action != 'delete') { body.attributes := attributes }
if (not isAboutPerson) {
  body.name := name
  body.timestamp := toInt(toUnixTimestamp(toDateTime(event.timestamp)))
}
let answer := fetch(f'https://{inputs.host}/api/v2/entity', {
  'method': 'POST',
  'headers': {'Authorization': authorization, 'Content-Type': 'application/json'},
  'body': body
})
${failWith('Error from customer.io api')}`,
  inputs_schema: [
    {
      ...integration(
        'customerio-track',
        'customerio',
        'Customer.io account',
        'A stored connection to the Track API. It takes the place of the site ID and the API key.',
      ),
      required: false,
    },
    text('site_id', 'Site ID', { description: 'Not needed with a connection.' }),
    {
      ...secret('token', 'API key', { description: 'A key of the Track API. Not needed with a connection.' }),
      required: false,
    },
    choice(
      'host',
      'Region',
      { 'track.customer.io': 'US', 'track-eu.customer.io': 'EU' },
      { description: 'Where the workspace is.' },
    ),
    choice(
      'identifier_key',
      'Identifier',
      { email: 'Email address', id: 'ID', cio_id: 'ID of Customer.io' },
      { description: 'How Customer.io finds the person.' },
    ),
    text('identifier_value', 'Value of the identifier', {
      description: 'Events without it are skipped.',
      default: '{person.properties.email}',
      required: true,
    }),
    choice(
      'action',
      'Action',
      {
        automatic: 'Automatic',
        identify: 'Update the person',
        event: 'Send an event',
        page: 'Send a page view',
        screen: 'Send a screen view',
        delete: 'Delete the person',
      },
      {
        description:
          'Automatic: $identify and $set update the person, $pageview and $screen are views, all else is an event.',
      },
    ),
    flag('include_all_properties', 'Include all properties', {
      description: 'Sends all properties of the event or the person, except those that begin with $.',
    }),
    dictionary('attributes', 'Attributes', {
      description: 'What is sent too. These values win over properties of the same name.',
      default: {
        email: '{person.properties.email}',
        lastname: '{person.properties.last_name}',
        firstname: '{person.properties.first_name}',
      },
    }),
  ],
});
