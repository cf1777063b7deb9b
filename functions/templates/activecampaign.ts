import { CHOSEN, destination, dictionary, email, secret, skipWithout, text } from './inputs.ts';

export const ACTIVECAMPAIGN = destination('activecampaign', {
  id: 'template-activecampaign',
  name: 'ActiveCampaign',
  description: 'Creates contacts in ActiveCampaign, or updates those with the same email address.',
  category: ['Email Marketing'],
  hog: `${CHOSEN}${skipWithout('inputs.email', 'email address')}if (not match(inputs.accountName, '^[A-Za-z0-9-]+$')) {
  throw Error('The account name must be the part of the address before .activehosted.com')
}
let contact := chosen(false, null, {
  'email': inputs.email,
  'firstName': inputs.firstName,
  'lastName': inputs.lastName,
  'phone': inputs.phone
})
contact.fieldValues := []
for (let key, value in chosen(false, null, inputs.attributes)) {
  contact.fieldValues := arrayPushBack(contact.fieldValues, {'field': key, 'value': value})
}
let host := f'{inputs.accountName}.api-us1.com'
let answer := fetch(f'https://{host}/api/3/contact/sync', {
  'method': 'POST',
  'headers': {'Api-Token': inputs.apiKey, 'Content-Type': 'application/json'},
  'body': {'contact': contact}
})
if (answer.status >= 300) {
  throw Error(f'Error from {host} (status {answer.status}): {answer.body}')
}
`,
  inputs_schema: [
    text('accountName', 'Account name', {
      description: 'The part of the address before .activehosted.com.',
      required: true,
    }),
    secret('apiKey', 'API key', { description: 'The key in the settings for developers.' }),
    email,
    text('firstName', 'First name', { default: '{person.properties.first_name}' }),
    text('lastName', 'Last name', { default: '{person.properties.last_name}' }),
    text('phone', 'Phone number', { default: '{person.properties.phone}' }),
    dictionary('attributes', 'Custom fields', {
      description: 'The keys are the IDs of custom fields, such as 1.',
      default: { 1: '{person.properties.company}', 2: '{person.properties.website}' },
    }),
  ],
});
