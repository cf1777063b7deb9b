import type { Template } from './template.ts';

export const WEBHOOK: Template = {
  id: 'template-webhook',
  type: 'destination',
  status: 'stable',
  name: 'HTTP Webhook',
  description: 'Sends an HTTP request for each event.',
  category: ['Custom'],
  icon_url: '/static/services/webhook.svg',
  hog: `let request := {
  'method': inputs.method,
  'headers': inputs.headers,
  'body': inputs.body
}
if (inputs.debug) {
  print('Request', inputs.url, request)
}
if (notEmpty(inputs.signing_secret)) {
  request.standard_webhooks := {'secret_input': 'signing_secret'}
}
let answer := fetch(inputs.url, request)
if (inputs.debug) {
  print('Response', answer.status, answer.body)
}
if (answer.status >= 400) {
  throw Error(f'Webhook failed with status {answer.status}: {answer.body}')
}
`,
  inputs_schema: [
    {
      key: 'url',
      type: 'string',
      label: 'Webhook URL',
      description: 'Where the requests go.',
      required: true,
      secret: false,
      hidden: false,
    },
    {
      key: 'method',
      type: 'choice',
      label: 'Method',
      choices: ['POST', 'PUT', 'PATCH', 'GET', 'DELETE'].map((value) => ({ label: value, value })),
      default: 'POST',
      required: false,
      secret: false,
      hidden: false,
    },
    {
      key: 'body',
      type: 'json',
      label: 'JSON body',
      default: { event: '{event}', person: '{person}' },
      required: false,
      secret: false,
      hidden: false,
    },
    {
      key: 'headers',
      type: 'dictionary',
      label: 'Headers',
      default: { 'Content-Type': 'application/json' },
      required: false,
      secret: false,
      hidden: false,
    },
    {
      key: 'signing_secret',
      type: 'string',
      label: 'Signing secret',
      description:
        'A key in base64, such as whsec_…. With it, each request is signed as Standard Webhooks describes: webhook-id, ' +
        'webhook-timestamp and webhook-signature.',
      required: false,
      secret: true,
      hidden: false,
      templating: false,
    },
    {
      key: 'debug',
      type: 'boolean',
      label: 'Log requests and responses',
      default: false,
      required: false,
      secret: false,
      hidden: false,
    },
  ],
  filters: null,
  masking: null,
  mapping_templates: null,
};
