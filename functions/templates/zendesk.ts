import { CHOSEN, destination, dictionary, email, failIfRefused, secret, text } from './inputs.ts';

export const ZENDESK = destination('zendesk', {
  id: 'template-zendesk',
  name: 'Zendesk',
  description: 'Creates users in Zendesk, or updates those with the same email address.',
  category: ['Customer Success'],
  hog: `${CHOSEN}if (empty(inputs.email) or empty(inputs.name)) {
  print('The event has no email address or no name. It is skipped.')
  return
}
if (not match(inputs.subdomain, '^[A-Za-z0-9-]+$')) {
  throw Error('The subdomain must be the part of the address before .zendesk.com')
}
let fields := {}
for (let key, value in chosen(false, null, inputs.attributes)) {
  if (not key in ['email', 'name']) { fields[key] := value }
}
let answer := fetch(f'https://{inputs.subdomain}.zendesk.com/api/v2/users/create_or_update', {
  'method': 'POST',
  'headers': {
    'Authorization': f'Basic {base64Encode(f'{inputs.admin_email}/token:{inputs.token}')}',
    'Content-Type': 'application/json'
  },
  'body': {
    'user': {
      'email': inputs.email,
      'name': inputs.name,
      'skip_verify_email': true,
      'user_fields': fields
    }
  }
})
${failIfRefused('zendesk.com')}`,
  inputs_schema: [
    text('subdomain', 'Subdomain', {
      description: 'The part of the address before .zendesk.com.',
      required: true,
    }),
    secret('admin_email', 'Email address of an admin', {
      description: 'In whose name the requests are made.',
    }),
    secret('token', 'API token', { description: 'A token of the API of Zendesk.' }),
    email,
    text('name', 'Name', {
      description: 'The name of the user. Events without it are skipped.',
      default: '{person.properties.name ?? person.name}',
      required: true,
    }),
    dictionary('attributes', 'User fields', {
      description: 'The keys of fields that exist in Zendesk.',
      default: { phone: '{person.properties.phone}', plan: '{person.properties.plan}' },
    }),
  ],
});
