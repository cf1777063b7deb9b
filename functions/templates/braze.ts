import { destination, dictionary, failIfRefused, secret, skipWithout, text } from './inputs.ts';

export const BRAZE = destination('braze', {
  id: 'template-braze',
  name: 'Braze',
  description: 'Updates users in Braze, and sends the event about them.',
  category: ['Customer Success'],
  hog: `${skipWithout('inputs.external_id', 'external ID')}let body := {
  'events': [{
    'external_id': inputs.external_id,
    'name': event.event,
    'time': event.timestamp,
    'properties': cleanNullValues(inputs.properties)
  }]
}
let attributes := cleanNullValues(inputs.attributes)
if (not empty(keys(attributes))) {
  attributes.external_id := inputs.external_id
  body.attributes := [attributes]
}
let answer := fetch(f'{inputs.brazeEndpoint}/users/track', {
  'method': 'POST',
  'headers': {'Authorization': f'Bearer {inputs.apiKey}', 'Content-Type': 'application/json'},
  'body': body
})
${failIfRefused('Braze')}`,
  inputs_schema: [
    text('brazeEndpoint', 'REST endpoint', {
      description:
        'The address of your instance, such as https://rest.iad-01.braze.com, without a slash at its end.',
      required: true,
    }),
    secret('apiKey', 'REST API key', { description: 'A key that has the permission users.track.' }),
    text('external_id', 'External ID', {
      description: 'The ID of the user in Braze. Events without it are skipped.',
      default: '{event.distinct_id}',
      required: true,
    }),
    dictionary('attributes', 'Attributes', {
      description: 'Attributes of the user.',
      default: { email: '{person.properties.email}' },
    }),
    dictionary('properties', 'Properties', {
      description: 'Properties of the event.',
      default: { url: '{event.properties.$current_url}' },
    }),
  ],
});
