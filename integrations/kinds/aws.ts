import { z } from 'zod';
import { common, type Kind, line, secret, token } from './kind.ts';

const fields = z.object({
  region: line(64)
    .regex(/^[a-z0-9-]+$/, 'Not the name of a region.')
    .describe('The region, such as eu-central-1.'),
  access_key_id: token('Access key ID.'),
  secret_access_key: token('Secret access key.'),
  session_token: secret(token('').nullish()).describe('Session token of temporary keys.'),
  ...common,
});

export const aws: Kind<z.output<typeof fields>> = {
  kind: 'aws',
  title: 'AWS access key',
  fields,
  hosts: () => ['*.amazonaws.com'],
  values: () => ({}),
  signing: ({ access_key_id, secret_access_key, session_token, region }) => ({
    scheme: 'aws-sigv4',
    accessKeyId: access_key_id,
    secretAccessKey: secret_access_key,
    sessionToken: session_token ?? null,
    region,
  }),
  displayName: ({ region }) => `AWS ${region}`,
};
