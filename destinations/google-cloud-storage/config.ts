import { createPrivateKey } from 'node:crypto';
import { z } from 'zod';
import { GOOGLE_TOKEN_URL, type GoogleKey, readGoogleKey } from '../../values/google-key.ts';
import { endpointFault, isPlainUrl, urlAddress } from '../address.ts';
import { listText, type RawConfig, secret } from '../config.ts';
import { DestinationConfigError } from '../errors.ts';
import { checkFileFields, fileFields } from '../file-options.ts';

export const googleFields = z
  .object({
    bucket_name: z.string().describe('Name of the bucket. It must exist.'),
    prefix: z
      .string()
      .default('')
      .describe('Prefix of all names of objects. A template, such as events/{year}/{month}.'),
    service_account_key: secret(z.string().nullish())
      .meta({ anyOf: [{ type: 'string' }, { type: 'object' }, { type: 'null' }] })
      .describe('Key file of a service account, as text or as the object in it.'),
    hmac_access_key: secret(z.string().nullish()).describe(
      'Access key of an HMAC (interoperability) key, instead of the key file.',
    ),
    hmac_secret: secret(z.string().nullish()).describe('Secret of the HMAC key.'),
    endpoint_url: z
      .string()
      .nullish()
      .describe('URL of the service, for emulators and private endpoints. Without it, that of Google.'),
    ...fileFields,
  })
  .superRefine((config, context) => {
    const complain = (path: string, message: string) =>
      context.addIssue({ code: 'custom', path: [path], message });
    const { bucket_name: bucket, endpoint_url: endpoint } = config;
    if (bucket.trim() === '') {
      complain('bucket_name', `The following inputs are empty: ${listText(['bucket_name'])}`);
      return;
    }
    checkFileFields(config, context);
    if (!/^[a-z0-9][a-z0-9._-]{1,220}[a-z0-9]$/.test(bucket) || bucket.includes('..'))
      complain('bucket_name', `bucket_name: ${JSON.stringify(bucket)} is not a valid bucket name`);
    const fault = endpoint ? endpointFault(endpoint) : undefined;
    if (fault) complain('endpoint_url', fault);
    const { hmac_access_key: access, hmac_secret: hmac } = config;
    if (config.service_account_key && (access || hmac))
      complain(
        'hmac_access_key',
        'service_account_key and an HMAC key cannot be set together: one of them is enough',
      );
    if (!access !== !hmac)
      complain(
        access ? 'hmac_secret' : 'hmac_access_key',
        'hmac_access_key and hmac_secret must be set together: one of them is missing',
      );
    if (access && !/^[A-Za-z0-9]{8,128}$/.test(access))
      complain('hmac_access_key', 'hmac_access_key is not the access key of an HMAC key');
  });

export type GoogleConfig = z.output<typeof googleFields>;

/** Replaces a key file by what of it is needed, as text. Refuses one that no run could use. */
export function expandKeyFile(config: RawConfig): RawConfig {
  const { service_account_key: given } = config;
  if (given === undefined || given === null || given === '') return config;
  const key = readGoogleKey(given);
  const fault = typeof key === 'string' ? key : keyFault(key);
  if (fault) throw new DestinationConfigError(`service_account_key: ${fault}`, 'service_account_key');
  return { ...config, service_account_key: JSON.stringify(key) };
}

function keyFault({ private_key: text, token_uri: tokens }: GoogleKey): string | undefined {
  if (tokens !== undefined && !isPlainUrl(tokens))
    return 'The token_uri of the key file must be an http or https URL without user, password and query.';
  try {
    if (createPrivateKey(text).asymmetricKeyType === 'rsa') return undefined;
  } catch {
    // What the parser says may repeat a part of the key.
  }
  return 'The private key of the key file cannot be used.';
}

/** The account of a stored key. */
export function accountOf(stored: string) {
  const { client_email, private_key, token_uri } = JSON.parse(stored) as GoogleKey;
  return {
    clientEmail: client_email,
    privateKey: private_key,
    tokenUrl: token_uri ?? GOOGLE_TOKEN_URL,
    scope: 'https://www.googleapis.com/auth/devstorage.read_write',
  };
}

const PUBLIC = 'https://storage.googleapis.com';

/** The URL of the service, without a slash at its end. */
export const endpointOf = ({ endpoint_url: endpoint }: { endpoint_url?: unknown }): string =>
  String(urlAddress(endpoint ? String(endpoint) : PUBLIC)).replace(/\/+$/, '');

/** Where tokens and signatures go. Where tokens come from is a part of the key file. */
export const googleAddress = (config: RawConfig): RawConfig => ({
  endpoint_url: config.endpoint_url ? urlAddress(config.endpoint_url) : null,
});

/** The bucket and the prefix. */
export const googlePlace = (config: RawConfig) => ({
  store: `gcs ${endpointOf(config)} ${config.bucket_name}`,
  prefix: String(config.prefix ?? ''),
});
