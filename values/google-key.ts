// The key file of a service account of Google, which people copy as it is. No message repeats a part of it.

import { objectIn } from './json-object.ts';

/** Where Google gives tokens. */
export const GOOGLE_TOKEN_URL = 'https://oauth2.googleapis.com/token';

const MOST_CHARACTERS = 20_000;

/** What of a key file is kept. It is a key file again. */
export interface GoogleKey {
  type: 'service_account';
  client_email: string;
  private_key: string;
  project_id: string | null;
  /** Where its tokens come from. Absent: from Google's own place. */
  token_uri?: string;
}

/** Says what is wrong with a key file. Undefined: nothing. */
function faultOf({ type, client_email, private_key, token_uri }: Record<string, unknown>) {
  const isEmail = typeof client_email === 'string' && /^[^\s@]{1,200}@[^\s@]{1,200}$/.test(client_email);
  if (type !== 'service_account' || !isEmail) return 'This is not the key file of a service account.';
  if (typeof private_key !== 'string' || !private_key.includes('-----BEGIN PRIVATE KEY-----')) {
    return 'The key file has no private key.';
  }
  if (private_key.length > MOST_CHARACTERS) return 'The private key is too long.';
  if (token_uri !== undefined && typeof token_uri !== 'string')
    return 'The token_uri of the key file is no text.';
  return undefined;
}

/** The object that was sent, or the one in a text. Undefined: there is none. */
function objectOf(value: unknown): Record<string, unknown> | undefined {
  if (typeof value === 'string') return value.length <= 2 * MOST_CHARACTERS ? objectIn(value) : undefined;
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : undefined;
}

/** Reads a key file, as text or as the object in it. Returns a sentence if it is none. */
export function readGoogleKey(value: unknown): GoogleKey | string {
  const found = objectOf(value);
  if (!found) return 'The key is not JSON. Send the key file of the service account.';
  const fault = faultOf(found);
  if (fault) return fault;
  const { client_email, private_key, project_id, token_uri } = found;
  return {
    type: 'service_account',
    client_email: client_email as string,
    private_key: private_key as string,
    project_id: typeof project_id === 'string' ? project_id : null,
    ...(token_uri === undefined || token_uri === GOOGLE_TOKEN_URL ? {} : { token_uri: token_uri as string }),
  };
}
