import { z } from 'zod';
import { bearerHeader, common, type Kind, text, token } from './kind.ts';

const fields = z.object({
  api_key: token('App API key.'),
  region: z.enum(['us', 'eu']).default('us').describe('Where the workspace is.'),
  ...common,
});

export const customerioApp: Kind<z.output<typeof fields>> = {
  kind: 'customerio-app',
  title: 'Customer.io (App API)',
  fields,
  hosts: ({ region }) => [region === 'eu' ? 'api-eu.customer.io' : 'api.customer.io'],
  values: ({ api_key }) => ({ api_key: text(api_key), authorization: bearerHeader(api_key) }),
};
