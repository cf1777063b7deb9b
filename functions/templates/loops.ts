import { destination, dictionary, email, failIfRefused, secret, skipWithout, text } from './inputs.ts';

const apiKey = secret('apiKey', 'API key', { description: 'A key of the API of Loops.' });
const properties = dictionary('properties', 'Properties', {
  description: 'What is sent. Values are texts, numbers, booleans or dates.',
  default: {},
});

export const LOOPS = destination('loops', {
  id: 'template-loops',
  name: 'Loops',
  description: 'Creates contacts in Loops, or updates those with the same email address.',
  category: ['Email Marketing'],
  hog: `${skipWithout('inputs.email', 'email address')}let contact := cleanNullValues(inputs.properties)
contact.email := inputs.email
contact.userId := event.distinct_id
let answer := fetch('https://app.loops.so/api/v1/contacts/update', {
  'method': 'PUT',
  'headers': {'Authorization': f'Bearer {inputs.apiKey}', 'Content-Type': 'application/json'},
  'body': contact
})
${failIfRefused('Loops')}`,
  inputs_schema: [
    apiKey,
    email,
    {
      ...properties,
      default: { firstName: '{person.properties.first_name}', lastName: '{person.properties.last_name}' },
    },
  ],
});

export const LOOPS_EVENT = destination('loops', {
  id: 'template-loops-event',
  name: 'Loops: event',
  description: 'Sends events to Loops, which can start its automations.',
  category: ['Email Marketing'],
  hog: `${skipWithout('inputs.email', 'email address')}let answer := fetch('https://app.loops.so/api/v1/events/send', {
  'method': 'POST',
  'headers': {'Authorization': f'Bearer {inputs.apiKey}', 'Content-Type': 'application/json'},
  'body': {
    'email': inputs.email,
    'userId': event.distinct_id,
    'eventName': inputs.event,
    'eventProperties': cleanNullValues(inputs.properties)
  }
})
${failIfRefused('Loops')}`,
  inputs_schema: [
    apiKey,
    email,
    text('event', 'Name of the event', { default: '{event.event}', required: true }),
    properties,
  ],
});
