import {
  allOfEvent,
  allOfPerson,
  CHOSEN,
  destination,
  dictionary,
  email,
  failWith,
  secret,
  text,
} from './inputs.ts';

const apiKey = secret('apiKey', 'Private API key', {
  description: 'A private key of Klaviyo that may write profiles and events.',
});
const externalId = text('externalId', 'External ID', {
  description:
    'The ID by which you know the profile. An event with neither this nor an email address is skipped.',
  default: '{person.id}',
});
const whoever = { ...email, required: false };
// Klaviyo supports a revision for two years.
const HEADERS = `{
    'Authorization': f'Klaviyo-API-Key {inputs.apiKey}',
    'revision': '2026-04-15',
    'Content-Type': 'application/json'
  }`;
const PROFILE = `if (empty(inputs.email) and empty(inputs.externalId)) {
  print('The event has neither an email address nor an external ID. It is skipped.')
  return
}
let profile := chosen(false, null, {'email': inputs.email, 'external_id': inputs.externalId})
`;

export const KLAVIYO_USER = destination('klaviyo', {
  id: 'template-klaviyo-user',
  name: 'Klaviyo',
  description: 'Creates profiles in Klaviyo, or updates those that exist.',
  category: ['Email Marketing'],
  hog: `${CHOSEN}${PROFILE}for (let key, value in chosen(false, null, inputs.attributes)) { profile[key] := value }
let place := chosen(false, null, {
  'latitude': person.properties.$geoip_latitude,
  'longitude': person.properties.$geoip_longitude,
  'city': person.properties.$geoip_city_name,
  'country': person.properties.$geoip_country_name,
  'region': person.properties.$geoip_subdivision_1_name,
  'zip': person.properties.$geoip_postal_code,
  'timezone': person.properties.$geoip_time_zone
})
if (notEmpty(keys(place))) { profile.location := place }
profile.properties := chosen(inputs.include_all_properties, person.properties, inputs.customProperties)
let answer := fetch('https://a.klaviyo.com/api/profile-import', {
  'method': 'POST',
  'headers': ${HEADERS},
  'body': {'data': {'type': 'profile', 'attributes': profile}}
})
${failWith('Error from a.klaviyo.com api')}`,
  inputs_schema: [
    apiKey,
    whoever,
    externalId,
    dictionary('attributes', 'Attributes', {
      description: 'Attributes that Klaviyo defines.',
      default: { first_name: '{person.properties.first_name}', last_name: '{person.properties.last_name}' },
    }),
    allOfPerson,
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
  hog: `${CHOSEN}${PROFILE}let answer := fetch('https://a.klaviyo.com/api/events', {
  'method': 'POST',
  'headers': ${HEADERS},
  'body': {
    'data': {
      'type': 'event',
      'attributes': {
        'metric': {'data': {'type': 'metric', 'attributes': {'name': event.event}}},
        'profile': {'data': {'type': 'profile', 'attributes': profile}},
        'properties': chosen(inputs.include_all_properties, event.properties, inputs.attributes),
        'time': event.timestamp,
        'unique_id': event.uuid
      }
    }
  }
})
${failWith('Error from a.klaviyo.com api')}`,
  inputs_schema: [
    apiKey,
    whoever,
    externalId,
    allOfEvent,
    dictionary('attributes', 'Properties', {
      description: 'Properties of the event.',
      default: { price: '{event.properties.price}', currency: '{event.properties.currency}' },
    }),
  ],
});
