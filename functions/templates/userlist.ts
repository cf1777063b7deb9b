import { destination, dictionary, email, failIfRefused, secret, skipWithout, text } from './inputs.ts';

export const USERLIST = destination('userlist', {
  id: 'template-userlist',
  name: 'Userlist',
  description: 'Creates and updates users in Userlist.',
  category: ['Email Marketing'],
  hog: `${skipWithout('inputs.email', 'email address')}let answer := fetch('https://push.userlist.com/users', {
  'method': 'POST',
  'headers': {'Authorization': f'Push {inputs.push_key}', 'Content-Type': 'application/json'},
  'body': {
    'identifier': inputs.identifier,
    'email': inputs.email,
    'properties': cleanNullValues(inputs.properties)
  }
})
${failIfRefused('Userlist')}`,
  inputs_schema: [
    secret('push_key', 'Push key', { description: 'The key of the Push API of Userlist.' }),
    text('identifier', 'Identifier', {
      description: 'The ID of the user in Userlist.',
      default: '{event.distinct_id}',
      required: true,
    }),
    email,
    dictionary('properties', 'Properties', {
      description: 'Properties of the user.',
      default: { first_name: '{person.properties.first_name}', last_name: '{person.properties.last_name}' },
    }),
  ],
});
