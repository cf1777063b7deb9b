import {
  allOfPerson,
  CHOSEN,
  destination,
  dictionary,
  failIfRefused,
  secret,
  skipWithout,
  text,
} from './inputs.ts';

export const GLEAP = destination('gleap', {
  id: 'template-gleap',
  name: 'Gleap',
  description: 'Creates and updates contacts in Gleap.',
  category: ['Customer Success'],
  hog: `${CHOSEN}${skipWithout('inputs.userId', 'user ID')}let contact := chosen(inputs.include_all_properties, person.properties, inputs.attributes)
contact.userId := inputs.userId
let answer := fetch('https://api.gleap.io/admin/identify', {
  'method': 'POST',
  'headers': {'Api-Token': inputs.apiKey, 'Content-Type': 'application/json'},
  'body': contact
})
${failIfRefused('gleap.io')}`,
  inputs_schema: [
    secret('apiKey', 'API token', { description: 'The secret API token of the project in Gleap.' }),
    text('userId', 'User ID', {
      description: 'The ID of the contact. Events without it are skipped.',
      default: '{person.id}',
      required: true,
    }),
    allOfPerson,
    dictionary('attributes', 'Attributes', {
      description: 'Attributes of the contact.',
      default: {
        email: '{person.properties.email}',
        name: '{person.properties.name}',
        phone: '{person.properties.phone}',
      },
    }),
  ],
});
