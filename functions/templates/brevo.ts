import { destination, dictionary, email, failIfRefused, secret, skipWithout } from './inputs.ts';

export const BREVO = destination('brevo', {
  id: 'template-brevo',
  name: 'Brevo',
  description: 'Creates contacts in Brevo, or updates those with the same email address.',
  category: ['Email Marketing'],
  hog: `${skipWithout('inputs.email', 'email address')}let answer := fetch('https://api.brevo.com/v3/contacts', {
  'method': 'POST',
  'headers': {'api-key': inputs.apiKey, 'Content-Type': 'application/json'},
  'body': {
    'email': inputs.email,
    'updateEnabled': true,
    'attributes': cleanNullValues(inputs.attributes)
  }
})
${failIfRefused('api.brevo.com')}`,
  inputs_schema: [
    secret('apiKey', 'API key', { description: 'A key of the API of Brevo, version 3.' }),
    email,
    dictionary('attributes', 'Attributes', {
      description: 'Attributes of the contact. They must exist in Brevo.',
      default: { FIRSTNAME: '{person.properties.first_name}', LASTNAME: '{person.properties.last_name}' },
    }),
  ],
});
