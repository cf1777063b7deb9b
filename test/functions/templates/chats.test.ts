import { describe, expect, test } from '@jest/globals';
import { trialsForFile } from './trial.ts';

const trials = trialsForFile();
const SLACK = { kind: 'slack', config: { access_token: 'xoxb-1' } };
const DISCORD_URL = 'https://discord.com/api/webhooks/1/abc-secret';
const TEAMS_URL = 'https://shop.webhook.office.com/webhookb2/abc-secret';
const said = (tried: { errors: string[] }) => tried.errors.join('\n');

describe('slack', () => {
  const inputs = { slack_workspace: 1, channel: 'C0123|#general', text: 'a "quote" & <tag>' };

  test('posts a message with the token of the workspace', async () => {
    const answers = [{ body: { ok: true, channel: 'C0123', ts: '1.2' } }];
    const tried = await trials.run('template-slack', { inputs, answers, integration: SLACK });
    expect([tried.status, tried.errors]).toEqual(['success', []]);
    expect(trials.heard).toMatchObject([
      {
        ...{ method: 'POST', url: 'https://slack.com/api/chat.postMessage' },
        headers: { authorization: 'Bearer xoxb-1', 'content-type': 'application/json; charset=utf-8' },
        body: {
          ...{ channel: 'C0123', text: 'a "quote" & <tag>', icon_emoji: ':hedgehog:', username: 'PostHog' },
          blocks: [{ text: { text: 'order paid by ada@shop.test' } }, { type: 'actions' }],
        },
      },
    ]);
    expect(JSON.stringify(tried)).not.toContain('xoxb-1');
  });

  test('an event without a person is named by its distinct_id', async () => {
    const answers = [{ body: { ok: true } }];
    const { text: _text, ...others } = inputs;
    await trials.run('template-slack', { inputs: others, answers, integration: SLACK, person: null });
    expect(trials.heard[0]?.body).toMatchObject({ text: 'order paid by ada' });
  });

  test.each([
    [
      { status: 200, body: { ok: false, error: 'channel_not_found' } },
      "200: {'ok': false, 'error': 'channel_not_found'}",
    ],
    [
      { status: 429, body: { ok: false, error: 'ratelimited' } },
      "429: {'ok': false, 'error': 'ratelimited'}",
    ],
    [{ status: 500, body: 'oops' }, '500: oops'],
  ])('fails when it is refused: %j', async (answer, words) => {
    const tried = await trials.run('template-slack', { inputs, answers: [answer], integration: SLACK });
    expect(tried.status).toBe('error');
    expect(said(tried)).toContain(`Failed to post message to Slack: ${words}`);
  });

  test('says that there is no workspace', async () => {
    expect(said(await trials.run('template-slack', { inputs }))).toContain(
      'The Slack workspace is not connected.',
    );
    expect(trials.heard).toEqual([]);
  });
});

describe('discord', () => {
  test('posts a message without mentions', async () => {
    const inputs = { webhookUrl: DISCORD_URL, content: '@everyone "{event.event}"' };
    const tried = await trials.run('template-discord', { inputs, answers: [{ status: 204, body: '' }] });
    expect([tried.status, tried.errors]).toEqual(['success', []]);
    expect(trials.heard).toMatchObject([
      {
        ...{ method: 'POST', url: DISCORD_URL, headers: { 'content-type': 'application/json' } },
        body: { content: '@everyone "order paid"', allowed_mentions: { parse: [] } },
      },
    ]);
    expect(JSON.stringify(tried)).not.toContain('abc-secret');
  });

  test('uses a connection, cuts long messages and allows mentions', async () => {
    const inputs = { discord: 1, content: 'x'.repeat(3000), allowedMentions: 'everyone' };
    const integration = { kind: 'discord', config: { webhook_url: DISCORD_URL } };
    const tried = await trials.run('template-discord', { inputs, integration });
    expect([tried.status, tried.errors]).toEqual(['success', []]);
    const everyone = { allowed_mentions: { parse: ['everyone', 'roles', 'users'] } };
    expect(trials.heard).toMatchObject([
      { url: DISCORD_URL, body: { content: 'x'.repeat(2000), ...everyone } },
    ]);
    await trials.run('template-discord', {
      inputs: { ...inputs, allowedMentions: 'roles_users' },
      integration,
    });
    expect(trials.heard[0]?.body).toMatchObject({ allowed_mentions: { parse: ['roles', 'users'] } });
  });

  test('fails when it is refused, and at other addresses', async () => {
    const answers = [{ status: 404, body: { message: 'Unknown Webhook', code: 10015 } }];
    const refused = await trials.run('template-discord', { inputs: { webhookUrl: DISCORD_URL }, answers });
    expect(said(refused)).toContain(
      "Failed to post message to Discord: 404: {'message': 'Unknown Webhook', 'code': 10015}",
    );
    const inputs = { webhookUrl: 'https://example.com/?https://discord.com/api/webhooks/' };
    expect(said(await trials.run('template-discord', { inputs }))).toContain(
      'Invalid URL. The URL should match the format: https://discord.com/api/webhooks/...',
    );
    expect(said(await trials.run('template-discord', {}))).toContain('Connect Discord or give the URL');
    expect(trials.heard).toEqual([]);
  });
});

describe('microsoft teams', () => {
  test('posts an adaptive card', async () => {
    const inputs = { webhookUrl: TEAMS_URL, text: 'a "b"\n{event.event}' };
    const tried = await trials.run('template-microsoft-teams', {
      inputs,
      answers: [{ status: 202, body: '' }],
    });
    expect([tried.status, tried.errors]).toEqual(['success', []]);
    expect(trials.heard).toMatchObject([{ method: 'POST', url: TEAMS_URL }]);
    expect(trials.heard[0]?.body).toEqual({
      type: 'message',
      attachments: [
        {
          contentType: 'application/vnd.microsoft.card.adaptive',
          contentUrl: null,
          content: {
            $schema: 'http://adaptivecards.io/schemas/adaptive-card.json',
            ...{ type: 'AdaptiveCard', version: '1.2' },
            body: [{ type: 'TextBlock', text: 'a "b"\norder paid', wrap: true }],
          },
        },
      ],
    });
    expect(JSON.stringify(tried)).not.toContain('abc-secret');
  });

  test.each(['https://prod-1.westeurope.logic.azure.com:443/workflows/1', 'https://a.b.powerplatform.com/x'])(
    'takes %s',
    async (webhookUrl) => {
      expect((await trials.run('template-microsoft-teams', { inputs: { webhookUrl } })).errors).toEqual([]);
    },
  );

  test('uses a connection', async () => {
    const integration = { kind: 'microsoft-teams', config: { webhook_url: TEAMS_URL } };
    const inputs = { microsoft_teams: 1 };
    const tried = await trials.run('template-microsoft-teams', { inputs, integration });
    expect([tried.errors, trials.heard[0]?.url]).toEqual([[], TEAMS_URL]);
  });

  test.each([
    [{ status: 400, body: 'Bad payload received by generic incoming webhook.' }, '400: Bad payload'],
    [
      { status: 200, body: 'Webhook message delivery failed with error: HTTP error 429' },
      '200: Webhook message delivery failed',
    ],
  ])('fails when it is refused: %j', async (answer, words) => {
    const inputs = { webhookUrl: TEAMS_URL };
    const tried = await trials.run('template-microsoft-teams', { inputs, answers: [answer] });
    expect(tried.status).toBe('error');
    expect(said(tried)).toContain(`Failed to post message to Microsoft Teams: ${words}`);
  });

  test('refuses other addresses', async () => {
    const inputs = { webhookUrl: 'https://example.com/webhook.office.com/x' };
    expect(said(await trials.run('template-microsoft-teams', { inputs }))).toContain(
      'Invalid URL. The URL should be that of',
    );
    expect(trials.heard).toEqual([]);
  });
});

describe('telegram', () => {
  const inputs = { bot_token: '12:secret-token', chat_id: '-100', text: 'a & b' };

  test('sends a message', async () => {
    const tried = await trials.run('template-telegram', { inputs, answers: [{ body: { ok: true } }] });
    expect([tried.status, tried.errors]).toEqual(['success', []]);
    expect(trials.heard).toMatchObject([
      {
        ...{ method: 'POST', url: 'https://api.telegram.org/bot12:secret-token/sendMessage' },
        body: { chat_id: '-100', text: 'a & b', disable_notification: false },
      },
    ]);
    expect(JSON.stringify(tried)).not.toContain('secret-token');
  });

  test('fails when it is refused', async () => {
    const body = { ok: false, error_code: 400, description: 'Bad Request: chat not found' };
    const tried = await trials.run('template-telegram', { inputs, answers: [{ status: 400, body }] });
    expect(said(tried)).toContain(
      "Failed to send message to Telegram: 400: {'ok': false, 'error_code': 400, 'description': 'Bad Request: chat",
    );
  });
});
