import { destination, input, MESSAGE } from './parts.ts';

export const SLACK = destination('slack', {
  id: 'template-slack',
  name: 'Slack',
  description: 'Posts a message to a Slack channel for each event.',
  category: ['Customer Success'],
  hog: `if (empty(inputs.slack_workspace.access_token)) {
  throw Error('The Slack workspace is not connected.')
}
// A channel may come with its name: C0123|#general.
let body := {
  'channel': splitByString('|', toString(inputs.channel))[1],
  'text': inputs.text
}
if (notEmpty(inputs.username)) { body.username := inputs.username }
if (notEmpty(inputs.icon_emoji)) { body.icon_emoji := inputs.icon_emoji }
if (notEmpty(inputs.blocks)) { body.blocks := inputs.blocks }
if (empty(inputs.text) and empty(inputs.blocks)) {
  print('The message is empty. Skipped.')
  return
}
let answer := fetch('https://slack.com/api/chat.postMessage', {
  'method': 'POST',
  'headers': {
    'Authorization': f'Bearer {inputs.slack_workspace.access_token}',
    'Content-Type': 'application/json; charset=utf-8'
  },
  'body': body
})
// Slack says 200 to most mistakes.
if (answer.status != 200 or answer.body.ok != true) {
  throw Error(f'Failed to post message to Slack: {answer.status}: {answer.body}')
}
`,
  inputs_schema: [
    input({
      key: 'slack_workspace',
      type: 'integration',
      integration: 'slack',
      label: 'Slack workspace',
      description:
        'The Slack app needs the scope chat:write, and chat:write.customize for a name and an icon.',
      requiredScopes: 'chat:write chat:write.customize',
      required: true,
    }),
    input({
      key: 'channel',
      type: 'integration_field',
      integration_key: 'slack_workspace',
      integration_field: 'slack_channel',
      label: 'Channel',
      description: 'The ID or name of the channel. The app must be a member of it.',
      required: true,
    }),
    input({ key: 'icon_emoji', label: 'Emoji icon', default: ':hedgehog:' }),
    input({ key: 'username', label: 'Bot name', default: 'PostHog' }),
    input({
      key: 'blocks',
      type: 'json',
      label: 'Blocks',
      description: 'The message in the format of Slack Block Kit. Empty: only the text is sent.',
      default: [
        { type: 'section', text: { type: 'mrkdwn', text: MESSAGE } },
        {
          type: 'actions',
          elements: [
            { type: 'button', text: { type: 'plain_text', text: 'View event' }, url: '{event.url}' },
          ],
        },
      ],
    }),
    input({
      key: 'text',
      label: 'Text',
      description: 'Notifications show it, and clients that show no blocks.',
      default: MESSAGE,
    }),
  ],
});
