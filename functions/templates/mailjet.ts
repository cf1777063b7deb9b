import { choice, destination, email, failIfRefused, flag, secret, skipWithout, text } from './inputs.ts';
import { input } from './parts.ts';

const keys = [
  secret('api_key', 'API key', { description: 'The public key of the API of Mailjet.' }),
  secret('secret_key', 'Secret key', { description: 'The secret that belongs to the key.' }),
];
const HEADERS = `{
    'Authorization': f'Basic {base64Encode(f'{inputs.api_key}:{inputs.secret_key}')}',
    'Content-Type': 'application/json'
  }`;

export const MAILJET_CONTACT = destination('mailjet', {
  id: 'template-mailjet-create-contact',
  name: 'Mailjet: contact',
  description: 'Creates contacts in Mailjet. Contacts that exist stay as they are.',
  category: ['Email Marketing'],
  // MJ18 says that there is such a contact already.
  hog: `${skipWithout('inputs.email', 'email address')}let answer := fetch('https://api.mailjet.com/v3/REST/contact/', {
  'method': 'POST',
  'headers': ${HEADERS},
  'body': {
    'Email': inputs.email,
    'Name': trim(inputs.name ?? ''),
    'IsExcludedFromCampaigns': inputs.is_excluded_from_campaigns ? true : false
  }
})
if (answer.status = 400 and position(toString(answer.body.ErrorMessage), 'MJ18') > 0) {
  print('The contact exists already.')
  return
}
${failIfRefused('api.mailjet.com')}`,
  inputs_schema: [
    ...keys,
    email,
    text('name', 'Name', {
      description: 'The name of the contact.',
      default: '{person.properties.first_name} {person.properties.last_name}',
    }),
    flag('is_excluded_from_campaigns', 'Leave out of campaigns', {
      description: 'Whether campaigns leave the contact out.',
    }),
    input({
      key: 'non_failure_status_codes',
      type: 'non_failure_status_codes',
      label: 'Status codes that are no failures',
      description: 'Mailjet answers 400 if there is such a contact.',
      default: [400],
      required: true,
      hidden: true,
    }),
  ],
});

export const MAILJET_LIST = destination('mailjet', {
  id: 'template-mailjet-update-contact-list',
  name: 'Mailjet: contact list',
  description: 'Adds contacts to a list of Mailjet, or removes them from it.',
  category: ['Email Marketing'],
  hog: `${skipWithout('inputs.email', 'email address')}let answer := fetch(f'https://api.mailjet.com/v3/REST/contact/{encodeURLComponent(inputs.email)}/managecontactslists', {
  'method': 'POST',
  'headers': ${HEADERS},
  'body': {'ContactsLists': [{'Action': inputs.action, 'ListID': inputs.contact_list_id}]}
})
${failIfRefused('api.mailjet.com')}`,
  inputs_schema: [
    ...keys,
    email,
    text('contact_list_id', 'Contact list ID', { description: 'The number of the list.', required: true }),
    choice('action', 'Action', {
      addnoforce: 'Add, unless they unsubscribed',
      addforce: 'Add',
      remove: 'Remove',
      unsub: 'Unsubscribe',
    }),
  ],
});
