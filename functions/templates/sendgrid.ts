import { destination, dictionary, email, failIfRefused, secret, skipWithout, text } from './inputs.ts';

export const SENDGRID = destination('sendgrid', {
  id: 'template-sendgrid',
  name: 'SendGrid',
  description: 'Creates and updates marketing contacts in SendGrid.',
  category: ['Email Marketing'],
  hog: `${skipWithout('inputs.email', 'email address')}let contact := cleanNullValues(inputs.properties)
contact.email := inputs.email
let custom := cleanNullValues(inputs.custom_fields)
if (not empty(keys(custom))) {
  contact.custom_fields := custom
}
let body := {'contacts': [contact]}
if (not empty(inputs.list_ids)) {
  body.list_ids := arrayMap(one -> trim(one), splitByString(',', inputs.list_ids))
}
let answer := fetch('https://api.sendgrid.com/v3/marketing/contacts', {
  'method': 'PUT',
  'headers': {'Authorization': f'Bearer {inputs.api_key}', 'Content-Type': 'application/json'},
  'body': body
})
${failIfRefused('api.sendgrid.com')}`,
  inputs_schema: [
    secret('api_key', 'API key', { description: 'A key of SendGrid that may change marketing contacts.' }),
    email,
    dictionary('properties', 'Fields', {
      description: 'Reserved fields of SendGrid.',
      default: {
        first_name: '{person.properties.first_name}',
        last_name: '{person.properties.last_name}',
        city: '{person.properties.city}',
        country: '{person.properties.country}',
        postal_code: '{person.properties.postal_code}',
      },
    }),
    dictionary('custom_fields', 'Custom fields', {
      description: 'The keys are the IDs of custom fields, such as e1_T.',
      default: {},
    }),
    text('list_ids', 'Lists', { description: 'IDs of the lists to which contacts are added, with commas.' }),
  ],
});
