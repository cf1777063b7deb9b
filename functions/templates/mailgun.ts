import { choice, destination, secret, skipWithout, text } from './inputs.ts';

export const MAILGUN = destination('mailgun', {
  id: 'template-mailgun-send-email',
  name: 'Mailgun',
  description: 'Sends an email with Mailgun for each event.',
  category: ['Email Marketing'],
  // Mailgun takes forms, and no JSON.
  hog: `${skipWithout('inputs.to', 'recipient')}let form := []
for (let key, value in {
  'from': inputs.from,
  'to': inputs.to,
  'subject': inputs.subject,
  'text': inputs.text,
  'html': inputs.html
}) {
  if (notEmpty(value)) { form := arrayPushBack(form, f'{key}={encodeURLComponent(toString(value))}') }
}
let answer := fetch(f'https://{inputs.host}/v3/{encodeURLComponent(inputs.domain_name)}/messages', {
  'method': 'POST',
  'headers': {
    'Authorization': f'Basic {base64Encode(f'api:{inputs.api_key}')}',
    'Content-Type': 'application/x-www-form-urlencoded'
  },
  'body': arrayStringConcat(form, '&')
})
if (answer.status >= 300) {
  throw Error(f'Error from {inputs.host} (status {answer.status}): {answer.body}')
}
`,
  inputs_schema: [
    text('domain_name', 'Domain', { description: 'The domain from which Mailgun sends.', required: true }),
    secret('api_key', 'API key', { description: 'A key of Mailgun that may send.' }),
    choice(
      'host',
      'Region',
      { 'api.mailgun.net': 'US', 'api.eu.mailgun.net': 'EU' },
      { description: 'Where the domain is.' },
    ),
    text('to', 'To', {
      description: 'The recipients, with commas between them. Events without a recipient are skipped.',
      default: '{person.properties.email}',
      required: true,
    }),
    text('from', 'From', { description: 'Such as Shop <shop@example.com>.', required: true }),
    text('subject', 'Subject', { description: 'The subject of the email.', required: true }),
    text('html', 'HTML', { description: 'The text of the email as HTML.' }),
    text('text', 'Text', { description: 'The text of the email for programs that show no HTML.' }),
  ],
});
