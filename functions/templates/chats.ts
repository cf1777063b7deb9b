import { DEBUG, destination, input, MESSAGE } from './parts.ts';

export const DISCORD = destination('discord', {
  id: 'template-discord',
  name: 'Discord',
  description: 'Posts a message to a Discord channel for each event. Messages are cut at 2000 characters.',
  category: ['Customer Success'],
  hog: `let url := inputs.discord.webhook_url ?? inputs.webhookUrl
if (empty(url)) {
  throw Error('Connect Discord or give the URL of a webhook.')
}
if (empty(inputs.discord.webhook_url) and not match(url, '^https://(discord|discordapp)[.]com/api/webhooks/.+')) {
  throw Error('Invalid URL. The URL should match the format: https://discord.com/api/webhooks/...')
}
if (empty(inputs.content)) {
  print('The message is empty. Skipped.')
  return
}
let mentions := []
if (inputs.allowedMentions = 'roles_users') { mentions := ['roles', 'users'] }
if (inputs.allowedMentions = 'everyone') { mentions := ['everyone', 'roles', 'users'] }
let body := {
  'content': substring(toString(inputs.content), 1, 2000),
  'allowed_mentions': { 'parse': mentions }
}
let answer := fetch(url, {
  'method': 'POST',
  'headers': { 'Content-Type': 'application/json' },
  'body': body
})
if (inputs.debug) { print('Response', answer.status, answer.body) }
if (answer.status < 200 or answer.status >= 300) {
  throw Error(f'Failed to post message to Discord: {answer.status}: {answer.body}')
}
`,
  inputs_schema: [
    input({
      key: 'discord',
      type: 'integration',
      integration: 'discord',
      label: 'Discord connection',
      description: 'A stored webhook. It takes the place of the webhook URL.',
    }),
    input({
      key: 'webhookUrl',
      label: 'Webhook URL',
      description: 'Begins with https://discord.com/api/webhooks/. Not needed with a connection.',
      secret: true,
      templating: false,
    }),
    input({
      key: 'content',
      label: 'Content',
      description: 'The message. It may contain Markdown.',
      default: `**${MESSAGE}**`,
      required: true,
    }),
    input({
      key: 'allowedMentions',
      type: 'choice',
      label: 'Mentions',
      description: 'Who is notified if the message mentions them. Events could mention people too.',
      choices: [
        { label: 'Nobody', value: 'none' },
        { label: 'Roles and users', value: 'roles_users' },
        { label: '@everyone, roles and users', value: 'everyone' },
      ],
      default: 'none',
      required: true,
    }),
    DEBUG,
  ],
});

export const MICROSOFT_TEAMS = destination('microsoft-teams', {
  id: 'template-microsoft-teams',
  name: 'Microsoft Teams',
  description: 'Posts an adaptive card to a Microsoft Teams channel for each event.',
  category: ['Customer Success'],
  hog: `let url := inputs.microsoft_teams.webhook_url ?? inputs.webhookUrl
if (empty(url)) {
  throw Error('Connect Microsoft Teams or give the URL of a webhook.')
}
let isKnown := match(url, '^https://([a-z0-9-]+[.])*(webhook[.]office[.]com|logic[.]azure[.]com|powerplatform[.]com)(:443)?/.+')
if (empty(inputs.microsoft_teams.webhook_url) and not isKnown and not startsWith(url, 'https://outlook.office.com/webhook/')) {
  throw Error('Invalid URL. The URL should be that of a webhook (https://<domain>.webhook.office.com/webhookb2/...) or workflow of Microsoft Teams.')
}
if (empty(inputs.text)) {
  print('The message is empty. Skipped.')
  return
}
let answer := fetch(url, {
  'method': 'POST',
  'headers': { 'Content-Type': 'application/json' },
  'body': {
    'type': 'message',
    'attachments': [{
      'contentType': 'application/vnd.microsoft.card.adaptive',
      'contentUrl': null,
      'content': {
        '$schema': 'http://adaptivecards.io/schemas/adaptive-card.json',
        'type': 'AdaptiveCard',
        'version': '1.2',
        'body': [{ 'type': 'TextBlock', 'text': toString(inputs.text), 'wrap': true }]
      }
    }]
  }
})
if (inputs.debug) { print('Response', answer.status, answer.body) }
// Older webhooks say 200 and put the error into the text.
if (answer.status < 200 or answer.status >= 300 or position(toString(answer.body), 'Webhook message delivery failed') > 0) {
  throw Error(f'Failed to post message to Microsoft Teams: {answer.status}: {answer.body}')
}
`,
  inputs_schema: [
    input({
      key: 'microsoft_teams',
      type: 'integration',
      integration: 'microsoft-teams',
      label: 'Microsoft Teams connection',
      description: 'A stored webhook. It takes the place of the webhook URL.',
    }),
    input({
      key: 'webhookUrl',
      label: 'Webhook URL',
      description: 'The URL of an incoming webhook or a workflow. Not needed with a connection.',
      secret: true,
      templating: false,
    }),
    input({
      key: 'text',
      label: 'Text',
      description: 'The text of the card. It may contain Markdown.',
      default: `**${MESSAGE}**`,
      required: true,
    }),
    DEBUG,
  ],
});

export const TELEGRAM = destination('telegram', {
  id: 'template-telegram',
  name: 'Telegram',
  description: 'Sends a message of a Telegram bot for each event. Messages are cut at 4096 characters.',
  category: ['Customer Success'],
  hog: `if (empty(inputs.text)) {
  print('The message is empty. Skipped.')
  return
}
let answer := fetch(f'https://api.telegram.org/bot{inputs.bot_token}/sendMessage', {
  'method': 'POST',
  'headers': { 'Content-Type': 'application/json' },
  'body': {
    'chat_id': toString(inputs.chat_id),
    'text': substring(toString(inputs.text), 1, 4096),
    'disable_notification': inputs.silent ? true : false
  }
})
if (inputs.debug) { print('Response', answer.status, answer.body) }
if (answer.status != 200 or answer.body.ok != true) {
  throw Error(f'Failed to send message to Telegram: {answer.status}: {answer.body}')
}
`,
  inputs_schema: [
    input({
      key: 'bot_token',
      label: 'Bot token',
      description: 'The token from BotFather.',
      required: true,
      secret: true,
      templating: false,
    }),
    input({
      key: 'chat_id',
      label: 'Chat',
      description: 'The ID of a chat, or the @name of a public channel.',
      required: true,
    }),
    input({
      key: 'text',
      label: 'Text',
      description: 'The message. It is sent as plain text.',
      default: MESSAGE,
      required: true,
    }),
    input({ key: 'silent', type: 'boolean', label: 'Send without sound', default: false }),
    DEBUG,
  ],
});
