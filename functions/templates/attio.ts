import { CHOSEN, destination, dictionary, email, failIfRefused, secret, skipWithout } from './inputs.ts';

export const ATTIO = destination('attio', {
  id: 'template-attio',
  name: 'Attio',
  description: 'Creates people in Attio, or updates those with the same email address.',
  category: ['CRM'],
  hog: `${CHOSEN}${skipWithout('inputs.email', 'email address')}let values := {'email_addresses': [{'email_address': inputs.email}]}
for (let key, value in chosen(false, null, inputs.personAttributes)) { values[key] := value }
let answer := fetch('https://api.attio.com/v2/objects/people/records?matching_attribute=email_addresses', {
  'method': 'PUT',
  'headers': {'Authorization': f'Bearer {inputs.apiKey}', 'Content-Type': 'application/json'},
  'body': {'data': {'values': values}}
})
${failIfRefused('api.attio.com')}`,
  inputs_schema: [
    secret('apiKey', 'Access token', { description: 'A token of Attio that may write records of people.' }),
    email,
    dictionary('personAttributes', 'Attributes', {
      description: 'The keys are slugs or IDs of attributes that exist in Attio.',
      default: { name: '{person.properties.name}', job_title: '{person.properties.job_title}' },
      required: true,
    }),
  ],
});
