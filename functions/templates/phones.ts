import { DEBUG, destination, input, MESSAGE } from './parts.ts';

const message = input({
  key: 'message',
  label: 'Message',
  description: 'The text of the message.',
  default: MESSAGE,
});

export const TWILIO = destination('twilio', {
  id: 'template-twilio',
  name: 'Twilio',
  description: 'Sends an SMS with Twilio for each event.',
  category: ['SMS & Push Notifications'],
  hog: `if (empty(inputs.twilio_account.authorization)) {
  throw Error('The Twilio account is not connected.')
}
if (empty(inputs.to_number)) {
  print('There is no phone number. Skipped.')
  return
}
if (empty(inputs.message)) {
  print('The message is empty. Skipped.')
  return
}
let to := encodeURLComponent(toString(inputs.to_number))
let from := encodeURLComponent(toString(inputs.from_number))
let text := encodeURLComponent(toString(inputs.message))
let account := encodeURLComponent(inputs.account_sid)
let answer := fetch(f'https://api.twilio.com/2010-04-01/Accounts/{account}/Messages.json', {
  'method': 'POST',
  'headers': {
    'Authorization': inputs.twilio_account.authorization,
    'Content-Type': 'application/x-www-form-urlencoded'
  },
  'body': f'To={to}&From={from}&Body={text}'
})
if (inputs.debug) { print('Response', answer.status, answer.body) }
if (answer.status < 200 or answer.status >= 300) {
  throw Error(f'Failed to send SMS via Twilio: {answer.status} {answer.body}')
}
`,
  inputs_schema: [
    input({
      key: 'twilio_account',
      type: 'integration',
      integration: 'basic',
      label: 'Twilio account',
      description:
        'User name and password for api.twilio.com: the Account SID and the Auth Token, or the SID and secret of an API key.',
      required: true,
    }),
    input({
      key: 'account_sid',
      label: 'Account SID',
      description: 'Begins with AC.',
      required: true,
    }),
    input({
      key: 'from_number',
      label: 'From',
      description: 'The number of the sender, with a plus and the country code.',
      required: true,
    }),
    input({
      key: 'to_number',
      label: 'To',
      description: 'The number of the recipient. Events without a number are skipped.',
      default: '{person.properties.phone}',
      required: true,
    }),
    message,
    DEBUG,
  ],
});

export const WHATSAPP = destination('whatsapp', {
  id: 'template-whatsapp',
  name: 'WhatsApp',
  description:
    'Sends a WhatsApp message for each event. A free text only reaches people who wrote in the last 24 hours. ' +
    'Others need an approved template.',
  category: ['SMS & Push Notifications'],
  hog: `if (empty(inputs.to_number)) {
  print('There is no phone number. Skipped.')
  return
}
let isTemplate := inputs.message_type = 'template'
if (isTemplate and empty(inputs.template_name)) {
  throw Error('Template name is required for template messages')
}
if (not isTemplate and empty(inputs.message)) {
  print('The message is empty. Skipped.')
  return
}
let body := {
  'messaging_product': 'whatsapp',
  'recipient_type': 'individual',
  'to': toString(inputs.to_number)
}
if (isTemplate) {
  body.type := 'template'
  body.template := { 'name': inputs.template_name, 'language': { 'code': inputs.template_language } }
  if (notEmpty(inputs.template_components)) { body.template.components := inputs.template_components }
} else {
  body.type := 'text'
  body.text := { 'preview_url': false, 'body': substring(toString(inputs.message), 1, 4096) }
}
let answer := fetch(f'https://graph.facebook.com/{inputs.api_version}/{inputs.phone_number_id}/messages', {
  'method': 'POST',
  'headers': { 'Authorization': f'Bearer {inputs.access_token}', 'Content-Type': 'application/json' },
  'body': body
})
if (inputs.debug) { print('Response', answer.status, answer.body) }
if (answer.status < 200 or answer.status >= 300) {
  throw Error(f'Failed to send WhatsApp message: {answer.status} {answer.body}')
}
`,
  inputs_schema: [
    input({
      key: 'access_token',
      label: 'Access token',
      description: 'A token of the Cloud API with the permission whatsapp_business_messaging.',
      required: true,
      secret: true,
      templating: false,
    }),
    input({
      key: 'phone_number_id',
      label: 'Phone number ID',
      description: 'The ID of the number that sends. It is not the number itself.',
      required: true,
    }),
    input({
      key: 'to_number',
      label: 'To',
      description: 'The number of the recipient. Events without a number are skipped.',
      default: '{person.properties.phone}',
      required: true,
    }),
    input({
      key: 'message_type',
      type: 'choice',
      label: 'Kind of message',
      description: 'A text, or a template that WhatsApp has approved.',
      choices: [
        { label: 'Text', value: 'text' },
        { label: 'Template', value: 'template' },
      ],
      default: 'text',
      required: true,
    }),
    message,
    input({
      key: 'template_name',
      label: 'Template',
      description: 'The name of an approved template. Only for messages of that kind.',
    }),
    input({ key: 'template_language', label: 'Language of the template', default: 'en_US' }),
    input({
      key: 'template_components',
      type: 'json',
      label: 'Components of the template',
      description: 'The values of its variables, as a list of components.',
    }),
    input({
      key: 'api_version',
      label: 'Version of the API',
      default: 'v23.0',
      description: 'A version of the Graph API.',
      required: true,
    }),
  ].concat(DEBUG),
});
