import { destination, dictionary, email, failIfRefused, integration, skipWithout, text } from './inputs.ts';

const account = (scope: string) =>
  integration('hubspot', 'oauth', 'HubSpot account', `A private app of HubSpot with the scope ${scope}.`);

export const HUBSPOT = destination('hubspot', {
  id: 'template-hubspot',
  name: 'HubSpot',
  description: 'Creates contacts in HubSpot, or updates those with the same email address.',
  category: ['CRM'],
  // HubSpot answers 207 if it takes the request but refuses the contact.
  hog: `${skipWithout('inputs.email', 'email address')}let properties := cleanNullValues(inputs.properties)
properties.email := inputs.email
let answer := fetch('https://api.hubapi.com/crm/v3/objects/contacts/batch/upsert', {
  'method': 'POST',
  'headers': {'Authorization': inputs.oauth.authorization, 'Content-Type': 'application/json'},
  'body': {'inputs': [{'idProperty': 'email', 'id': inputs.email, 'properties': properties}]}
})
if (answer.status = 207) {
  throw Error(f'HubSpot refuses the contact: {answer.body}')
}
${failIfRefused('HubSpot')}`,
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

export const HUBSPOT_EVENT = destination('hubspot', {
  id: 'template-hubspot-event',
  name: 'HubSpot: custom event',
  description: 'Sends custom events to HubSpot. The event must be defined there.',
  category: ['CRM'],
  hog: `${skipWithout('inputs.email', 'email address')}let answer := fetch('https://api.hubapi.com/events/v3/send', {
  'method': 'POST',
  'headers': {'Authorization': inputs.oauth.authorization, 'Content-Type': 'application/json'},
  'body': {
    'eventName': inputs.event,
    'email': inputs.email,
    'occurredAt': event.timestamp,
    'uuid': event.uuid,
    'properties': cleanNullValues(inputs.properties)
  }
})
${failIfRefused('HubSpot')}`,
  inputs_schema: [
    account('behavioral_events.event_definitions.read_write'),
    text('event', 'Name of the event', {
      description: 'The full name of the event in HubSpot, such as pe123456_order_paid.',
      required: true,
    }),
    email,
    dictionary('properties', 'Properties', {
      description: 'Properties of the event. They must be defined in HubSpot.',
      default: { hs_page_url: '{event.properties.$current_url}' },
    }),
  ],
});
