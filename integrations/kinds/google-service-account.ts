import { z } from 'zod';
import { common, type Kind, line, secret } from './kind.ts';

const TOKEN_URL = 'https://oauth2.googleapis.com/token';
const CLOUD = 'https://www.googleapis.com/auth/cloud-platform';
const MOST_CHARACTERS = 20_000;

/** What of a key file is kept. It is a key file again. */
interface ServiceAccount {
  type: 'service_account';
  client_email: string;
  private_key: string;
  project_id: string | null;
}

/** Says what is wrong with a key file. Undefined: nothing. The message repeats no part of it. */
function faultOf({
  type,
  client_email,
  private_key,
  token_uri,
}: Record<string, unknown>): string | undefined {
  const isEmail = typeof client_email === 'string' && /^[^\s@]{1,200}@[^\s@]{1,200}$/.test(client_email);
  if (type !== 'service_account' || !isEmail) return 'This is not the key file of a service account.';
  if (typeof private_key !== 'string' || !private_key.includes('-----BEGIN PRIVATE KEY-----')) {
    return 'The key file has no private key.';
  }
  if (private_key.length > MOST_CHARACTERS) return 'The private key is too long.';
  if (token_uri !== undefined && token_uri !== TOKEN_URL) {
    return `The token_uri of the key file must be ${TOKEN_URL}.`;
  }
  return undefined;
}

/** Parses a key file, as text or as the object in it. Undefined: it is neither. */
function parseKey(value: unknown): Record<string, unknown> | undefined {
  let key = value;
  try {
    if (typeof key === 'string' && key.length <= 2 * MOST_CHARACTERS) key = JSON.parse(key);
  } catch {
    return undefined;
  }
  return typeof key === 'object' && key !== null ? (key as Record<string, unknown>) : undefined;
}

const key = z.unknown().transform((value, context): ServiceAccount => {
  const parsed = parseKey(value);
  const fault = parsed ? faultOf(parsed) : 'The key is not JSON. Send the key file of the service account.';
  if (!parsed || fault) {
    context.addIssue({ code: 'custom', message: fault as string });
    return z.NEVER;
  }
  const { client_email, private_key, project_id } = parsed;
  return {
    type: 'service_account',
    client_email: client_email as string,
    private_key: private_key as string,
    project_id: typeof project_id === 'string' ? project_id : null,
  };
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
    tokenUrl: TOKEN_URL,
    scope: scope ?? CLOUD,
  }),
  derived: ({ key: { client_email, project_id } }) => ({ client_email, project_id }),
  displayName: ({ client_email }) => client_email ?? undefined,
};
