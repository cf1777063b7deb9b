import {
  allOfEvent,
  allOfPerson,
  CHOSEN,
  destination,
  dictionary,
  email,
  failIfRefused,
  secret,
  skipWithout,
} from './inputs.ts';

const apiKey = secret('apiKey', 'API key', { description: 'A key of the API of Loops.' });
const HEADERS = `{'Authorization': f'Bearer {inputs.apiKey}', 'Content-Type': 'application/json'}`;

export const LOOPS = destination('loops', {
  id: 'template-loops',
  name: 'Loops',
  description: 'Creates contacts in Loops, or updates those with the same email address.',
  category: ['Email Marketing'],
  hog: `${CHOSEN}${skipWithout('inputs.email', 'email address')}let contact := {'email': inputs.email, 'userId': person.id}
for (let key, value in chosen(inputs.include_all_properties, person.properties, inputs.properties)) {
  contact[key] := value
}
let answer := fetch('https://app.loops.so/api/v1/contacts/update', {
  'method': 'PUT',
  'headers': ${HEADERS},
  'body': cleanNullValues(contact)
})
${failIfRefused('app.loops.so')}`,
  inputs_schema: [
    apiKey,
    email,
    allOfPerson,
    dictionary('properties', 'Properties', {
      description: 'Properties of the contact. Values are texts, numbers, booleans or dates.',
      default: { firstName: '{person.properties.first_name}', lastName: '{person.properties.last_name}' },
    }),
  ],
});

export const LOOPS_EVENT = destination('loops', {
  id: 'template-loops-event',
  name: 'Loops: event',
  description: 'Sends events to Loops, which can start its automations.',
  category: ['Email Marketing'],
  hog: `${CHOSEN}${skipWithout('inputs.email', 'email address')}let answer := fetch('https://app.loops.so/api/v1/events/send', {
  'method': 'POST',
  'headers': ${HEADERS},
  'body': cleanNullValues({
    'email': inputs.email,
    'userId': person.id,
    'eventName': event.event,
    'eventProperties': chosen(inputs.include_all_properties, event.properties, inputs.properties)
  })
})
${failIfRefused('app.loops.so')}`,
  inputs_schema: [
    apiKey,
    email,
    allOfEvent,
    dictionary('properties', 'Properties', {
      description: 'Properties of the event. Values are texts, numbers, booleans or dates.',
      default: { pathname: '{event.properties.$pathname}' },
    }),
  ],
});
