import { choice, destination, dictionary, failIfRefused, flag, integration } from './inputs.ts';

export const CUSTOMERIO = destination('customerio', {
  id: 'template-customerio',
  name: 'Customer.io',
  description: 'Creates and updates people in Customer.io, and sends events about them.',
  category: ['Email Marketing'],
  // Version 2 of the Track API has one path for people and their events.
  hog: `let identifiers := {}
for (let key, value in inputs.identifiers) {
  if (not empty(value)) {
    identifiers[key] := value
  }
}
if (empty(keys(identifiers))) {
  print('The event has no identifier of a person. It is skipped.')
  return
}
let action := inputs.action
if (action = 'automatic') {
  action := event.event in ['$identify', '$set'] ? 'identify' : 'event'
}
let attributes := {}
if (inputs.include_all_properties) {
  let all := (action = 'event' ? event.properties : person?.properties) ?? {}
  for (let key, value in all) {
    if (not startsWith(key, '$')) {
      attributes[key] := value
    }
  }
}
for (let key, value in inputs.attributes) {
  attributes[key] := value
}
let body := {
  'type': 'person',
  'identifiers': identifiers,
  'action': action,
  'attributes': cleanNullValues(attributes)
}
if (action = 'event') {
  body.name := event.event
  body.timestamp := toInt(toUnixTimestamp(toDateTime(event.timestamp)))
}
let answer := fetch(f'https://{inputs.host}/api/v2/entity', {
  'method': 'POST',
  'headers': {'Authorization': inputs.customerio.authorization, 'Content-Type': 'application/json'},
  'body': body
})
${failIfRefused('Customer.io')}`,
  inputs_schema: [
    integration('customerio-track', 'customerio', 'Customer.io account', 'The Track API of a workspace.'),
    choice(
      'host',
      'Region',
      { 'track.customer.io': 'US', 'track-eu.customer.io': 'EU' },
      { description: 'Where the workspace is. It must be the region of the account above.' },
    ),
    dictionary('identifiers', 'Identifier', {
      description: 'Exactly one of id, email and cio_id. Events without it are skipped.',
      default: { email: '{person.properties.email}' },
      required: true,
    }),
    choice(
      'action',
      'Action',
      { automatic: 'Automatic', identify: 'Update the person', event: 'Send an event' },
      { description: 'Automatic: $identify and $set update the person, other events are sent as events.' },
    ),
    flag('include_all_properties', 'Include all properties', {
      description: 'Sends all properties of the event or the person, except those that begin with $.',
    }),
    dictionary('attributes', 'Attributes', {
      description: 'What is sent too. These values win over properties of the same name.',
      default: { lastname: '{person.properties.last_name}', firstname: '{person.properties.first_name}' },
    }),
  ],
});
