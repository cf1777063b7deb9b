import { choice, destination, secret, text } from './inputs.ts';
import { input, MESSAGE } from './parts.ts';

export const PAGERDUTY = destination('pagerduty', {
  id: 'template-pagerduty',
  name: 'PagerDuty',
  description: 'Triggers, acknowledges or resolves an incident in PagerDuty for each event.',
  category: ['Error tracking'],
  hog: `if (not inputs.event_action in ['trigger', 'acknowledge', 'resolve']) {
  throw Error(f'Unsupported event action "{inputs.event_action}". Use trigger, acknowledge or resolve.')
}
let body := {'routing_key': inputs.routing_key, 'event_action': inputs.event_action}
if (notEmpty(inputs.dedup_key)) { body.dedup_key := substring(toString(inputs.dedup_key), 1, 255) }
if (inputs.event_action = 'trigger') {
  body.payload := {
    'summary': substring(toString(inputs.summary), 1, 1024),
    'source': inputs.source,
    'severity': inputs.severity in ['critical', 'error', 'warning', 'info'] ? inputs.severity : 'error',
    'timestamp': event.timestamp
  }
  if (notEmpty(inputs.component)) { body.payload.component := inputs.component }
  if (notEmpty(inputs.event_class)) { body.payload['class'] := inputs.event_class }
  if (notEmpty(inputs.custom_details)) { body.payload.custom_details := inputs.custom_details }
  body.client := 'Sluice'
  if (notEmpty(inputs.links)) { body.links := inputs.links }
} else if (empty(inputs.dedup_key)) {
  throw Error(f'A dedup key is required to {inputs.event_action} an incident.')
}
let answer := fetch('https://events.pagerduty.com/v2/enqueue', {
  'method': 'POST',
  'headers': {'Content-Type': 'application/json'},
  'body': body
})
if (answer.status >= 300) {
  throw Error(f'PagerDuty rejected the event: {answer.status}: {answer.body}')
}
`,
  inputs_schema: [
    secret('routing_key', 'Routing key', {
      description: 'The integration key of an integration with the Events API v2.',
    }),
    choice(
      'event_action',
      'Action',
      { trigger: 'Trigger', acknowledge: 'Acknowledge', resolve: 'Resolve' },
      { description: 'The last two are about the incident with the same key.' },
    ),
    text('dedup_key', 'Key of the incident', {
      description: 'Events with the same key are about one incident. Empty: each event triggers another one.',
    }),
    text('summary', 'Summary', {
      description: 'The title of the incident.',
      default: MESSAGE,
      required: true,
    }),
    text('source', 'Source', {
      description: 'What has the problem.',
      default: '{project.name}',
      required: true,
    }),
    choice('severity', 'Severity', {
      ...{ error: 'Error', critical: 'Critical', warning: 'Warning', info: 'Info' },
    }),
    text('component', 'Component', { description: 'The part of the source that has the problem.' }),
    text('event_class', 'Class', { description: 'The kind of the problem.' }),
    input({
      key: 'custom_details',
      type: 'json',
      label: 'Details',
      description: 'What PagerDuty shows with the incident.',
      default: { event: '{event}', person: '{person}' },
    }),
    input({
      key: 'links',
      type: 'json',
      label: 'Links',
      description: 'What PagerDuty links to.',
      default: [{ href: '{event.url}', text: 'View event' }],
    }),
  ],
});
