import { z } from 'zod';
import { bearerHeader, common, type Kind, text, token } from './kind.ts';

const fields = z.object({ access_token: token('Access token of the private app (pat-…).'), ...common });

export const hubspot: Kind<z.output<typeof fields>> = {
  kind: 'hubspot',
  title: 'HubSpot',
  fields,
  hosts: () => ['api.hubapi.com'],
  values: ({ access_token }) => ({
    access_token: text(access_token),
    authorization: bearerHeader(access_token),
  }),
};
