import { z } from 'zod';
import { GOOGLE_TOKEN_URL, type GoogleKey, readGoogleKey } from '../../values/google-key.ts';
import { common, type Kind, line, secret } from './kind.ts';

const CLOUD = 'https://www.googleapis.com/auth/cloud-platform';

const key = z.unknown().transform((value, context): GoogleKey => {
  const complain = (message: string) => {
    context.addIssue({ code: 'custom', message });
    return z.NEVER;
  };
  const read = readGoogleKey(value);
  if (typeof read === 'string') return complain(read);
  return read.token_uri === undefined
    ? read
    : complain(`The token_uri of the key file must be ${GOOGLE_TOKEN_URL}.`);
});

const read = z.string().nullish().meta({ readOnly: true }).describe('Is read from the key.');
const fields = z.object({
  key: secret(key.meta({ anyOf: [{ type: 'string' }, { type: 'object' }] })).describe(
    'The key file of the service account, as text or as an object.',
  ),
  scope: line(2_000)
    .optional()
    .describe(
      'What the tokens are for, separated by spaces. By default everything that the account may do in the cloud.',
    ),
  client_email: read,
  project_id: read,
  ...common,
});

export const googleServiceAccount: Kind<z.output<typeof fields>> = {
  kind: 'google-service-account',
  title: 'Google service account',
  fields,
  hosts: () => ['*.googleapis.com'],
  values: () => ({}),
  signing: ({ key: { client_email, private_key }, scope }) => ({
    scheme: 'google-jwt',
    clientEmail: client_email,
    privateKey: private_key,
    tokenUrl: GOOGLE_TOKEN_URL,
    scope: scope ?? CLOUD,
  }),
  derived: ({ key: { client_email, project_id } }) => ({ client_email, project_id }),
  displayName: ({ client_email }) => client_email ?? undefined,
};
