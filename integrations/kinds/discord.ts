import { z } from 'zod';
import { common, type Kind, webhookHost, webhookUrl, wholeUrl } from './kind.ts';

const HOSTS = ['discord.com', 'discordapp.com', '*.discord.com'];
const fields = z.object({
  webhook_url: webhookUrl(HOSTS, 'https://discord.com/api/webhooks/1/abc'),
  ...common,
});

export const discord: Kind<z.output<typeof fields>> = {
  kind: 'discord',
  title: 'Discord',
  fields,
  hosts: ({ webhook_url }) => webhookHost(webhook_url),
  values: ({ webhook_url }) => ({ webhook_url: wholeUrl(webhook_url) }),
};
