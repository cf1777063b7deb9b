import { z } from 'zod';
import { bearerHeader, common, type Kind, text, token } from './kind.ts';

const fields = z.object({ access_token: token('Bot token of the Slack app (xoxb-…).'), ...common });

export const slack: Kind<z.output<typeof fields>> = {
  kind: 'slack',
  title: 'Slack',
  fields,
  hosts: () => ['slack.com'],
  values: ({ access_token }) => ({
    access_token: text(access_token),
    authorization: bearerHeader(access_token),
  }),
};
