import { choice, destination, secret } from './inputs.ts';
import { input } from './parts.ts';

const INSTANCES = {
  ...{ 'US-01': 'iad-01.braze.com', 'US-02': 'iad-02.braze.com', 'US-03': 'iad-03.braze.com' },
  ...{ 'US-04': 'iad-04.braze.com', 'US-05': 'iad-05.braze.com', 'US-06': 'iad-06.braze.com' },
  ...{ 'US-07': 'iad-07.braze.com', 'US-08': 'iad-08.braze.com', 'US-10': 'us-10.braze.com' },
  ...{ 'EU-01': 'fra-01.braze.eu', 'EU-02': 'fra-02.braze.eu', 'AU-01': 'au-01.braze.com' },
  ...{ 'ID-01': 'id-01.braze.com' },
};

export const BRAZE = destination('braze', {
  id: 'template-braze',
  name: 'Braze',
  description: 'Updates users in Braze, and sends the event about them.',
  category: ['Customer Success'],
  hog: `let identifiers := ['external_id', 'user_alias', 'braze_id', 'email', 'phone']
let body := {'events': [inputs.event]}
let attributes := cleanNullValues(inputs.attributes ?? {})
if (notEmpty(keys(attributes))) {
  // Braze refuses attributes that are of nobody.
  for (let key in identifiers) {
    if (key in ['external_id', 'user_alias', 'braze_id'] and attributes[key] = null and notEmpty(inputs.event[key])) {
      attributes[key] := inputs.event[key]
    }
  }
  body.attributes := [attributes]
}
if (not arrayExists(key -> notEmpty(inputs.event[key]), identifiers)) {
  print('The event has no identifier of a user. It is skipped.')
  return
}
let answer := fetch(f'{inputs.brazeEndpoint}/users/track', {
  'method': 'POST',
  'headers': {'Authorization': f'Bearer {inputs.apiKey}', 'Content-Type': 'application/json'},
  'body': body
})
if (answer.status >= 300) {
  throw Error(f'Error sending event: {answer.status} {answer.body}')
}
`,
  inputs_schema: [
    choice(
      'brazeEndpoint',
      'Instance',
      Object.fromEntries(Object.entries(INSTANCES).map(([name, host]) => [`https://rest.${host}`, name])),
      { description: 'Where your account of Braze is.' },
    ),
    secret('apiKey', 'REST API key', { description: 'A key that has the permission users.track.' }),
    input({
      key: 'attributes',
      type: 'json',
      label: 'Attributes',
      description: 'Attributes of the user. Without an identifier, they are those of the user of the event.',
      default: { email: '{person.properties.email}' },
    }),
    input({
      key: 'event',
      type: 'json',
      label: 'Event',
      description: 'The event as Braze takes it. It needs an identifier, such as external_id.',
      default: {
        properties: '{event.properties}',
        external_id: '{event.distinct_id}',
        name: '{event.event}',
        time: '{event.timestamp}',
      },
      required: true,
    }),
  ],
});
