import { destination, dictionary, email, failIfRefused, secret, skipWithout, text } from './inputs.ts';

const apiKey = secret('apiKey', 'Private API key', {
  description: 'A private key of Klaviyo that may write profiles and events.',
});
const HEADERS = `{
    'Authorization': f'Klaviyo-API-Key {inputs.apiKey}',
    'revision': '2024-10-15',
    'Content-Type': 'application/json'
  }`;

export const KLAVIYO_USER = destination('klaviyo', {
  id: 'template-klaviyo-user',
  name: 'Klaviyo',
  description: 'Creates profiles in Klaviyo, or updates those that exist.',
  category: ['Email Marketing'],
  hog: `${skipWithout('inputs.email', 'email address')}let attributes := cleanNullValues(inputs.attributes)
attributes.email := inputs.email
attributes.external_id := event.distinct_id
attributes.properties := cleanNullValues(inputs.customProperties)
let answer := fetch('https://a.klaviyo.com/api/profile-import', {
  'method': 'POST',
  'headers': ${HEADERS},
  'body': {'data': {'type': 'profile', 'attributes': attributes}}
})
${failIfRefused('Klaviyo')}`,
  inputs_schema: [
    apiKey,
    email,
    dictionary('attributes', 'Attributes', {
      description: 'Attributes that Klaviyo defines.',
      default: { first_name: '{person.properties.first_name}', last_name: '{person.properties.last_name}' },
    }),
    dictionary('customProperties', 'Custom properties', {
      description: 'Properties of your own.',
      default: {},
    }),
  ],
});

export const KLAVIYO_EVENT = destination('klaviyo', {
  id: 'template-klaviyo-event',
  name: 'Klaviyo: event',
  description: 'Sends events about profiles to Klaviyo.',
  category: ['Email Marketing'],
  hog: `${skipWithout('inputs.email', 'email address')}let answer := fetch('https://a.klaviyo.com/api/events', {
  'method': 'POST',
  'headers': ${HEADERS},
  'body': {
    'data': {
      'type': 'event',
      'attributes': {
        'metric': {'data': {'type': 'metric', 'attributes': {'name': inputs.event}}},
        'profile': {'data': {'type': 'profile', 'attributes': {'email': inputs.email}}},
        'properties': cleanNullValues(inputs.attributes),
        'time': event.timestamp,
        'unique_id': event.uuid
      }
    }
  }
})
${failIfRefused('Klaviyo')}`,
  inputs_schema: [
    apiKey,
    email,
    text('event', 'Name of the event', { default: '{event.event}', required: true }),
    dictionary('attributes', 'Properties', {
      description: 'Properties of the event.',
      default: { url: '{event.properties.$current_url}' },
    }),
  ],
});
