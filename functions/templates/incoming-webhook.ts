import { choice, secret, text } from './inputs.ts';
import { DEBUG, input, template } from './parts.ts';

export const INCOMING_WEBHOOK = template('source_webhook', 'webhook', {
  id: 'template-source-webhook',
  name: 'HTTP Incoming Webhook',
  description: 'Captures an event for each request that comes to its address.',
  category: ['Custom'],
  hog: `if (inputs.debug) {
  print('Incoming request:', request.body)
}
if (request.method != (inputs.method ?? 'POST')) {
  return {'httpResponse': {'status': 405, 'body': 'Method not allowed'}}
}
// What is compared are hashes, so the time it takes tells nothing about the header.
if (notEmpty(inputs.auth_header) and sha256Hex(request.headers['authorization'] ?? '') != sha256Hex(inputs.auth_header)) {
  print('Incoming request denied due to bad authorization header')
  return {'httpResponse': {'status': 401, 'body': 'Unauthorized'}}
}
for (let name in ['event', 'distinct_id']) {
  if (empty(inputs[name])) {
    return {'httpResponse': {'status': 400, 'body': {'error': f'"{name}" could not be parsed correctly'}}}
  }
}
postHogCapture({
  'event': toString(inputs.event),
  'distinct_id': toString(inputs.distinct_id),
  'properties': inputs.properties
})
`,
  inputs_schema: [
    text('event', 'Name of the event', { default: '{request.body.event}', required: true }),
    text('distinct_id', 'Distinct ID', {
      description: 'The ID of the person whom the event is about.',
      default: '{request.body.distinct_id}',
      required: true,
    }),
    input({
      key: 'properties',
      type: 'json',
      label: 'Properties',
      description: 'Properties of the event.',
      default: { $ip: '{request.ip}', $lib: 'posthog-webhook', $source_url: '{source.url}' },
    }),
    {
      ...secret('auth_header', 'Authorization', {
        description:
          'The whole header Authorization that requests must have, such as Bearer SECRET. Empty: none is needed.',
      }),
      required: false,
    },
    {
      ...choice(
        'method',
        'Method',
        { POST: 'POST', PUT: 'PUT', PATCH: 'PATCH', GET: 'GET', DELETE: 'DELETE' },
        { description: 'Requests with other methods are refused.' },
      ),
      required: false,
    },
    { ...DEBUG, label: 'Log requests', description: 'Writes the bodies of requests into the log.' },
  ],
});
