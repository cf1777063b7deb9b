import {
  CHOSEN,
  destination,
  dictionary,
  email,
  expects404,
  flag,
  secret,
  skipWithout,
  text,
} from './inputs.ts';

const utm = (key: string, name: string) =>
  text(key, `UTM ${name}`, {
    description: 'Is stored when a subscription begins.',
    default: `{event.properties.utm_${name}}`,
  });

export const BEEHIIV = destination('beehiiv', {
  id: 'template-beehiiv',
  name: 'beehiiv',
  description: 'Creates subscribers in beehiiv, and updates their custom fields.',
  category: ['Email Marketing'],
  hog: `${CHOSEN}${skipWithout('inputs.email', 'email address')}let fields := []
for (let name, value in chosen(false, null, inputs.customFields)) {
  fields := arrayPushBack(fields, {'name': name, 'value': value})
}
let subscriptions := f'https://api.beehiiv.com/v2/publications/{encodeURLComponent(inputs.publicationId)}/subscriptions'
let one := f'{subscriptions}/by_email/{encodeURLComponent(inputs.email)}'
fun ask(method, url, body, doing) {
  let answer := fetch(url, {
    'method': method,
    'headers': {'Authorization': f'Bearer {inputs.apiKey}', 'Content-Type': 'application/json'},
    'body': body
  })
  if (answer.status >= 300 and not (method = 'GET' and answer.status = 404)) {
    throw Error(f'Error {doing} beehiiv subscription (status {answer.status}): {answer.body}')
  }
  return answer
}
let found := ask('GET', one, null, 'looking up')
if (found.status = 404) {
  let subscription := chosen(false, null, {
    'email': inputs.email,
    'utm_source': inputs.utmSource,
    'utm_medium': inputs.utmMedium,
    'utm_campaign': inputs.utmCampaign,
    'utm_term': inputs.utmTerm,
    'utm_content': inputs.utmContent,
    'referring_site': inputs.referringSite,
    'custom_fields': fields
  })
  subscription.reactivate_existing := inputs.reactivateExisting ? true : false
  subscription.send_welcome_email := inputs.sendWelcomeEmail ? true : false
  ask('POST', subscriptions, subscription, 'creating')
  return
}
// An update does not bring anybody back. A subscription does.
if (inputs.reactivateExisting and found.body.data.status = 'inactive') {
  ask('POST', subscriptions, {
    'email': inputs.email,
    'reactivate_existing': true,
    'send_welcome_email': inputs.sendWelcomeEmail ? true : false
  }, 'reactivating')
}
if (notEmpty(fields)) { ask('PUT', one, {'custom_fields': fields}, 'updating') }
`,
  inputs_schema: [
    secret('apiKey', 'API key', { description: 'A key of the workspace in beehiiv.' }),
    text('publicationId', 'Publication ID', { description: 'Begins with pub_.', required: true }),
    { ...email, default: '{person.properties.email ?? event.properties.email}' },
    dictionary('customFields', 'Custom fields', {
      description: 'The names of custom fields that exist in beehiiv.',
      default: {
        'First Name': '{person.properties.first_name}',
        'Last Name': '{person.properties.last_name}',
      },
    }),
    flag('sendWelcomeEmail', 'Send the welcome email', { description: 'To new subscribers.' }),
    flag('reactivateExisting', 'Bring former subscribers back', {
      description: 'Only for people who ask to be subscribed again.',
    }),
    text('utmSource', 'UTM source', {
      description: 'Is stored when a subscription begins.',
      default: '{event.properties.utm_source}',
    }),
    utm('utmMedium', 'medium'),
    utm('utmCampaign', 'campaign'),
    utm('utmTerm', 'term'),
    utm('utmContent', 'content'),
    text('referringSite', 'Referring site', {
      description: 'Is stored when a subscription begins.',
      default: '{event.properties.$referrer}',
    }),
    expects404,
  ],
});
