import {
  allOfEvent,
  CHOSEN,
  destination,
  dictionary,
  failIfRefused,
  flag,
  secret,
  skipWithout,
  text,
} from './inputs.ts';
import { DEBUG, input, MESSAGE } from './parts.ts';

export const ENGAGE = destination('engage', {
  id: 'template-engage-so',
  name: 'Engage.so',
  description: 'Sends events to Engage, which reads users, groups and their properties out of them.',
  category: ['Email Marketing'],
  hog: `let answer := fetch('https://api.engage.so/posthog', {
  'method': 'POST',
  'headers': {
    'Authorization': f'Basic {base64Encode(f'{inputs.public_key}:{inputs.private_key}')}',
    'Content-Type': 'application/json'
  },
  'body': event
})
${failIfRefused('api.engage.so')}`,
  inputs_schema: [
    secret('public_key', 'Public key', { description: 'The public key of your account of Engage.' }),
    secret('private_key', 'Private key', { description: 'The private key of your account of Engage.' }),
  ],
});

export const KNOCK = destination('knock', {
  id: 'template-knock',
  name: 'Knock',
  description: 'Sends events to a source of Knock, which can start workflows.',
  category: ['SMS & Push Notifications'],
  hog: `${CHOSEN}${skipWithout('inputs.userId', 'user ID')}let properties := chosen(inputs.include_all_properties, event.properties, inputs.attributes)
if (inputs.include_all_properties and notEmpty(event.elements_chain)) {
  properties['$elements_chain'] := event.elements_chain
}
let answer := fetch(inputs.webhookUrl, {
  'method': 'POST',
  'headers': {'Content-Type': 'application/json'},
  'body': {
    'type': 'track',
    'event': event.event,
    'userId': inputs.userId,
    'properties': properties,
    'messageId': event.uuid,
    'timestamp': event.timestamp
  }
})
${failIfRefused('knock.app')}`,
  inputs_schema: [
    text('webhookUrl', 'Webhook URL', {
      description: 'The URL of an HTTP source of Knock.',
      required: true,
      secret: true,
      templating: false,
    }),
    text('userId', 'User ID', {
      description: 'The ID of the user in Knock. Events without it are skipped.',
      default: '{person.id}',
      required: true,
    }),
    allOfEvent,
    dictionary('attributes', 'Properties', {
      description: 'Properties of the event.',
      default: { email: '{person.properties.email}', name: '{person.properties.name}' },
    }),
  ],
});

export const ONESIGNAL = destination('onesignal', {
  id: 'template-onesignal',
  name: 'OneSignal',
  description: 'Sends custom events to OneSignal, which can start journeys.',
  category: ['SMS & Push Notifications'],
  hog: `${skipWithout('inputs.externalId', 'external ID')}let answer := fetch(f'https://api.onesignal.com/apps/{encodeURLComponent(inputs.appId)}/custom_events', {
  'method': 'POST',
  'headers': {'Authorization': f'Key {inputs.apiKey}', 'Content-Type': 'application/json'},
  'body': {
    'events': [{
      'name': inputs.eventName,
      'external_id': inputs.externalId,
      'timestamp': inputs.eventTimestamp,
      'properties': empty(inputs.eventProperties) ? event.properties : inputs.eventProperties
    }]
  }
})
if (answer.status >= 300) {
  throw Error(f'Error sending event: {answer.status} {answer.body}')
}
`,
  inputs_schema: [
    text('appId', 'App ID', { description: 'The ID of the app in OneSignal.', required: true }),
    secret('apiKey', 'API key', { description: 'A key of the app.' }),
    text('externalId', 'External ID', {
      description: 'The ID by which you know the user. Events without it are skipped.',
      default: '{person.id}',
      required: true,
    }),
    text('eventName', 'Name of the event', { default: '{event.event}', required: true }),
    input({
      key: 'eventProperties',
      type: 'json',
      label: 'Properties',
      description: 'Properties of the event. Empty: all properties are sent.',
      default: {},
    }),
    text('eventTimestamp', 'Time of the event', { default: '{event.timestamp}', required: true }),
  ],
});

export const KUDOSITY = destination('kudosity', {
  id: 'template-kudosity-sms',
  name: 'Kudosity SMS',
  description: 'Sends an SMS with Kudosity for each event.',
  category: ['SMS & Push Notifications'],
  hog: `${skipWithout('inputs.recipient', 'phone number')}${skipWithout('inputs.message', 'message')}let body := {
  'message': inputs.message,
  'sender': inputs.sender,
  'recipient': toString(inputs.recipient)
}
if (notEmpty(inputs.message_ref)) { body.message_ref := substring(toString(inputs.message_ref), 1, 500) }
if (inputs.track_links) { body.track_links := true }
let answer := fetch('https://api.transmitmessage.com/v2/sms', {
  'method': 'POST',
  'headers': {'x-api-key': inputs.api_key, 'Content-Type': 'application/json'},
  'body': body
})
if (inputs.debug) { print('Response', answer.status, answer.body) }
${failIfRefused('Kudosity API')}`,
  inputs_schema: [
    secret('api_key', 'API key', { description: 'A key of the API of Kudosity.' }),
    text('sender', 'Sender', {
      description: 'A number or name that Kudosity has approved.',
      required: true,
    }),
    text('recipient', 'Recipient', {
      description: 'The number with the country code. Events without a number are skipped.',
      default: '{person.properties.phone}',
      required: true,
    }),
    text('message', 'Message', { description: 'The text of the SMS.', default: MESSAGE, required: true }),
    text('message_ref', 'Reference', {
      description: 'Comes back in reports of delivery.',
      default: '{event.uuid}',
    }),
    flag('track_links', 'Track links', { description: 'Kudosity shortens the links and counts clicks.' }),
    DEBUG,
  ],
});
