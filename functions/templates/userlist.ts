import { CHOSEN, destination, dictionary, failIfRefused, secret, text } from './inputs.ts';

export const USERLIST = destination('userlist', {
  id: 'template-userlist',
  name: 'Userlist',
  description: 'Sends users, companies and events to Userlist.',
  category: ['Email Marketing'],
  hog: `${CHOSEN}let user := chosen(false, null, {
  'identifier': inputs.user_identifier,
  'email': inputs.user_email,
  'properties': chosen(false, null, inputs.user_properties)
})
let isUser := notEmpty(user.identifier) or notEmpty(user.email)
let company := chosen(false, null, {
  'identifier': inputs.company_identifier,
  'name': inputs.company_name,
  'properties': chosen(false, null, inputs.company_properties)
})
let isCompany := notEmpty(company.identifier)
let path := '/events'
let body := {'name': event.event, 'occurred_at': event.timestamp, 'properties': cleanNullValues(event.properties)}
if (event.event in ['$identify', '$set']) {
  path := '/users'
  body := isUser ? user : {}
} else if (event.event = '$groupidentify') {
  path := '/companies'
  body := isCompany ? company : {}
  if (isUser and isCompany) { body.user := user }
} else {
  if (not match(event.event, '^[a-z][a-z0-9_-]*$')) {
    print(f'Userlist does not take events with the name {event.event}. It is skipped.')
    return
  }
  if (isUser) { body.user := user }
  if (isCompany) { body.company := company }
  if (not isUser and not isCompany) { body := {} }
}
if (empty(keys(body))) {
  print('The event has no identifier. It is skipped.')
  return
}
let answer := fetch(f'https://push.userlist.com{path}', {
  'method': 'POST',
  'headers': {'Authorization': f'Push {inputs.push_key}', 'Content-Type': 'application/json'},
  'body': body
})
${failIfRefused('push.userlist.com')}`,
  inputs_schema: [
    secret('push_key', 'Push key', { description: 'The key of the Push API of Userlist.' }),
    text('user_identifier', 'User identifier', {
      description: 'The ID of the user in Userlist.',
      default: '{person.id}',
      required: true,
    }),
    text('user_email', 'Email address', { default: '{person.properties.email}' }),
    dictionary('user_properties', 'Properties of the user', {
      default: { firstname: '{person.properties.first_name}', lastname: '{person.properties.last_name}' },
    }),
    text('company_identifier', 'Company identifier', {
      description: 'The ID of the company in Userlist.',
      default: '{groups.account.id}',
    }),
    text('company_name', 'Name of the company', { default: '{groups.account.properties.name}' }),
    dictionary('company_properties', 'Properties of the company', {
      default: { industry: '{groups.account.properties.industry}' },
    }),
  ],
});
