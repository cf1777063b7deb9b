import { z } from 'zod';
import { common, type Kind, webhookHost, webhookUrl, wholeUrl } from './kind.ts';

const HOSTS = ['*.webhook.office.com', '*.logic.azure.com', '*.powerplatform.com', 'outlook.office.com'];
const fields = z.object({
  webhook_url: webhookUrl(HOSTS, 'https://example.webhook.office.com/webhookb2/abc'),
  ...common,
});

export const microsoftTeams: Kind<z.output<typeof fields>> = {
  kind: 'microsoft-teams',
  title: 'Microsoft Teams',
  fields,
  hosts: ({ webhook_url }) => webhookHost(webhook_url),
  values: ({ webhook_url }) => ({ webhook_url: wholeUrl(webhook_url) }),
};
