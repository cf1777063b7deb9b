// Services that analyse events themselves.
import { CHOSEN, destination, expects404, failIfRefused, secret, skipWithout, text } from './inputs.ts';
import { NAMES_OF } from './parts.ts';

export const RUDDERSTACK = destination('rudderstack', {
  id: 'template-rudderstack',
  name: 'RudderStack',
  description: 'Sends events to RudderStack as calls of its HTTP API: identify, alias, page and track.',
  category: ['Custom'],
  hog: `${CHOSEN}let given := event.properties
let properties := chosen(true, given, null)
let context := chosen(false, null, {
  'app': {'name': 'sluice'},
  'ip': given.$ip,
  'os': chosen(false, null, {'name': given.$os, 'version': given.$os_version}),
  'page': chosen(false, null, {
    'url': given.$current_url,
    'path': given.$pathname,
    'referrer': given.$referrer,
    'initial_referrer': given.$initial_referrer,
    'referring_domain': given.$referring_domain,
    'initial_referring_domain': given.$initial_referring_domain
  }),
  'screen': chosen(false, null, {'height': given.$screen_height, 'width': given.$screen_width}),
  'library': chosen(false, null, {'name': given.$lib, 'version': given.$lib_version}),
  'userAgent': given.$raw_user_agent,
  'browser': given.$browser,
  'browser_version': given.$browser_version
})
let call := {
  'type': 'track',
  'channel': 'server',
  'context': context,
  'messageId': event.uuid,
  'originalTimestamp': event.timestamp
}
if (notEmpty(inputs.identifier)) { call.userId := toString(inputs.identifier) }
let anonymousId := given.$anon_distinct_id ?? given.$device_id
if (notEmpty(anonymousId)) { call.anonymousId := anonymousId }
if (event.event in ['$identify', '$set']) {
  call.type := 'identify'
  call.traits := chosen(false, null, given['$set'])
  context.traits := call.traits
} else if (event.event = '$create_alias') {
  if (empty(given.alias)) {
    print('The event has no alias. It is skipped.')
    return
  }
  call.type := 'alias'
  call.userId := toString(given.alias)
  call.previousId := event.distinct_id
} else if (event.event in ['$pageview', '$screen']) {
  call.type := event.event = '$pageview' ? 'page' : 'screen'
  let name := given.name ?? given.$screen_name ?? given.title
  if (notEmpty(name)) { call.name := name }
  call.properties := chosen(false, null, {
    'url': given.$current_url,
    'path': given.$pathname,
    'title': given.title,
    'referrer': given.$referrer,
    'referring_domain': given.$referring_domain
  })
  for (let key, value in properties) { call.properties[key] := value }
} else {
  call.event := event.event = '$autocapture' ? (given.$event_type ?? event.event) : event.event
  call.properties := properties
}
// RudderStack refuses calls of nobody.
if (empty(call.userId) and empty(call.anonymousId)) {
  print('The event has no identifier. It is skipped.')
  return
}
let host := replaceAll(inputs.host, '/v1/batch', '')
if (substring(host, length(host), 1) = '/') { host := substring(host, 1, length(host) - 1) }
let answer := fetch(f'{host}/v1/batch', {
  'method': 'POST',
  'headers': {
    'Authorization': f'Basic {base64Encode(f'{inputs.token}:')}',
    'Content-Type': 'application/json'
  },
  'body': {'batch': [call], 'sentAt': formatDateTime(now(), '%Y-%m-%dT%H:%i:%SZ', 'UTC')}
})
${failIfRefused('RudderStack')}`,
  inputs_schema: [
    text('host', 'Data plane', {
      description: 'The URL of your data plane.',
      default: 'https://hosted.rudderlabs.com',
      required: true,
    }),
    secret('token', 'Write key', { description: 'The write key of the source in RudderStack.' }),
    text('identifier', 'User ID', {
      description: 'The ID of the user in RudderStack.',
      default: '{person.id ?? event.distinct_id}',
      required: true,
    }),
  ],
});

export const AVO = destination('avo', {
  id: 'template-avo',
  name: 'Avo',
  description:
    'Tells the inspector of Avo which properties events have and of which types they are, without their values.',
  category: ['Analytics'],
  hog: `${NAMES_OF}fun typeIn(value) {
  if (value = null) { return 'null' }
  let names := {'integer': 'int', 'array': 'list', 'tuple': 'list'}
  return names[typeof(value)] ?? typeof(value)
}
let excluded := namesOf(inputs.excludeProperties)
let included := namesOf(inputs.includeProperties)
let properties := []
for (let key, value in event.properties) {
  let isWanted := empty(included) or has(included, key)
  if (isWanted and not has(excluded, key) and not startsWith(key, '$')) {
    properties := arrayPushBack(properties, {'propertyName': key, 'propertyType': typeIn(value)})
  }
}
let time := formatDateTime(toDateTime(event.timestamp), '%Y-%m-%dT%H:%i:%SZ', 'UTC')
let answer := fetch('https://api.avo.app/inspector/posthog/v1/track', {
  'method': 'POST',
  'headers': {
    'Content-Type': 'application/json',
    'Accept': 'application/json',
    'api-key': inputs.apiKey,
    'env': inputs.environment
  },
  'body': [{
    'apiKey': inputs.apiKey,
    'env': inputs.environment,
    'appName': inputs.appName,
    'appVersion': '1.0.0',
    'libVersion': '1.0.0',
    'libPlatform': 'node',
    'samplingRate': 1,
    'sessionId': event.properties.$session_id ?? event.uuid,
    'trackingId': '',
    'createdAt': time,
    'messageId': event.uuid,
    'type': 'event',
    'eventName': event.event,
    'eventProperties': properties,
    'avoFunction': false,
    'eventId': null,
    'eventHash': null
  }]
})
${failIfRefused('api.avo.app')}`,
  inputs_schema: [
    secret('apiKey', 'API key', { description: 'The key of a source in Avo.' }),
    text('environment', 'Environment', {
      description: 'The environment in Avo: dev, staging or prod.',
      default: 'dev',
      required: true,
    }),
    text('appName', 'Name of the app', { description: 'What Avo calls this app.', default: 'Sluice' }),
    text('excludeProperties', 'Properties to leave out', {
      description: 'Names of properties, with commas between them.',
      default: '',
    }),
    text('includeProperties', 'Properties to send', {
      description: 'Names of properties, with commas between them. Empty: all are sent.',
      default: '',
    }),
  ],
});

export const CLEARBIT = destination('clearbit', {
  id: 'template-clearbit',
  name: 'Clearbit',
  description:
    'Asks Clearbit who has an email address and stores the answer with the person. Persons are asked for once.',
  category: ['Analytics'],
  // The event that the answer is stored by would otherwise ask again.
  hog: `if (event.event = '$set' or person.properties.clearbit_enriched = true) { return }
${skipWithout('inputs.email', 'email address')}let answer := fetch(f'https://person-stream.clearbit.com/v2/combined/find?email={encodeURLComponent(inputs.email)}', {
  'method': 'GET',
  'headers': {'Authorization': f'Bearer {inputs.api_key}'}
})
if (answer.status = 404) {
  print('Clearbit does not know this address.')
  return
}
${failIfRefused('person-stream.clearbit.com')}if (empty(answer.body.person) and empty(answer.body.company)) {
  print('Clearbit knows nothing about this address.')
  return
}
postHogCapture({
  'event': '$set',
  'distinct_id': event.distinct_id,
  'properties': {
    '$lib': 'hog_function',
    '$hog_function_source': source.url,
    '$set_once': {'person': answer.body.person, 'company': answer.body.company, 'clearbit_enriched': true}
  }
})
`,
  inputs_schema: [
    secret('api_key', 'API key', { description: 'A secret key of Clearbit.' }),
    text('email', 'Email address', {
      description: 'Whom Clearbit is asked about. Events without an email address are skipped.',
      default: '{person.properties.email}',
      required: true,
    }),
    expects404,
  ],
});
