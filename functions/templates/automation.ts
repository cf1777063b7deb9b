import { DEBUG, destination, input } from './parts.ts';

const BODY = {
  key: 'body',
  type: 'json',
  label: 'JSON body',
  description: 'What is sent for each event.',
  default: { event: '{event}', person: '{person}' },
} as const;

export const ZAPIER = destination('zapier', {
  id: 'template-zapier',
  name: 'Zapier',
  description: 'Starts a Zap for each event.',
  category: ['Custom'],
  hog: `let hook := trim(toString(inputs.hook))
let base := 'https://hooks.zapier.com/'
if (startsWith(hook, base)) {
  hook := replaceOne(hook, base, '')
}
if (position(hook, '://') > 0) {
  throw Error(f'The hook must be a path or URL of {base}')
}
if (startsWith(hook, '/')) { hook := substring(hook, 2, length(hook)) }
let answer := fetch(f'{base}{hook}', {
  'method': 'POST',
  'headers': { 'Content-Type': 'application/json' },
  'body': inputs.body
})
if (inputs.debug) { print('Response', answer.status, answer.body) }
if (answer.status < 200 or answer.status >= 300) {
  throw Error(f'Failed to start the Zap: {answer.status}: {answer.body}')
}
`,
  inputs_schema: [
    input({
      key: 'hook',
      label: 'Zapier hook',
      description: 'The URL of the hook, or its path: hooks/catch/123/abc.',
      required: true,
      secret: true,
      templating: false,
    }),
    input(BODY),
    DEBUG,
  ],
});

export const MAKE = destination('make', {
  id: 'template-make',
  name: 'Make',
  description: 'Starts a scenario of Make for each event.',
  category: ['Custom'],
  hog: `if (not match(inputs.webhookUrl, '^https://hook[.]([a-z0-9-]+[.])*(make[.]com|integromat[.]com|make[.]celonis[.]com)/.+')) {
  throw Error('Invalid URL. The URL should match the format: https://hook.<region>.make.com/<hookUrl>')
}
let answer := fetch(inputs.webhookUrl, {
  'method': 'POST',
  'headers': { 'Content-Type': 'application/json' },
  'body': inputs.body
})
if (inputs.debug) { print('Response', answer.status, answer.body) }
if (answer.status < 200 or answer.status >= 300) {
  throw Error(f'Error from make.com (status {answer.status}): {answer.body}')
}
`,
  inputs_schema: [
    input({
      key: 'webhookUrl',
      label: 'Webhook URL',
      description: 'The URL of a custom webhook, such as https://hook.eu1.make.com/abc.',
      required: true,
      secret: true,
      templating: false,
    }),
    input(BODY),
    DEBUG,
  ],
});

export const REPLICATOR = destination('replicator', {
  id: 'template-posthog-replicator',
  name: 'Event replicator',
  description:
    'Sends a copy of each event to another project of Sluice or PostHog. The copy keeps its uuid and time, and brings ' +
    'the properties of the person. The property $replicated_through names the projects that a copy came through.',
  category: ['Custom'],
  hog: `let properties := {}
if (inputs.include_all_properties ?? true) {
  for (let key, value in event.properties) { properties[key] := value }
}
// Without this, two projects that copy each other would never stop.
let through := event.properties['$replicated_through'] ?? []
if (has(through, project.url)) {
  print('The event was already copied from this project. Skipped.')
  return
}
properties['$replicated_through'] := arrayPushBack(through, project.url)
if ((inputs.include_all_properties ?? true) and person != null and properties['$process_person_profile'] != false) {
  let set := {}
  for (let key, value in person.properties) { set[key] := value }
  for (let key, value in properties['$set'] ?? {}) { set[key] := value }
  properties['$set'] := set
}
if (notEmpty(event.elements_chain)) { properties['$elements_chain'] := event.elements_chain }
for (let key, value in inputs.properties ?? {}) { properties[key] := value }
let host := match(inputs.host, '/$') ? substring(inputs.host, 1, length(inputs.host) - 1) : inputs.host
let answer := fetch(f'{host}/i/v0/e/', {
  'method': 'POST',
  'headers': { 'Content-Type': 'application/json' },
  'body': {
    'token': inputs.token,
    'uuid': event.uuid,
    'event': event.event,
    'distinct_id': event.distinct_id,
    'timestamp': event.timestamp,
    'properties': properties
  }
})
if (inputs.debug) { print('Response', answer.status, answer.body) }
if (answer.status < 200 or answer.status >= 300) {
  throw Error(f'Failed to copy the event: {answer.status}: {answer.body.detail ?? answer.body}')
}
`,
  inputs_schema: [
    input({
      key: 'host',
      label: 'Host',
      description: 'The address that captures events, without a path.',
      default: 'https://us.i.posthog.com',
      required: true,
    }),
    input({
      key: 'token',
      label: 'Project token',
      description: 'The token of the project that gets the copies.',
      required: true,
    }),
    input({
      key: 'include_all_properties',
      type: 'boolean',
      label: 'Include all properties',
      description:
        'Whether the copy has the properties of the event and the person. Otherwise it has those below.',
      default: true,
    }),
    input({
      key: 'properties',
      type: 'dictionary',
      label: 'Further properties',
      description: 'They take the place of properties of the same name.',
      default: {},
    }),
    DEBUG,
  ],
});
