import { z } from 'zod';
import { listText, secret } from '../config.ts';
import { checkFileFields, fileFields } from '../file-options.ts';

const ENCRYPTIONS = ['AES256', 'aws:kms'];

export const s3Fields = z
  .object({
    bucket_name: z.string().describe('The bucket. It must exist.'),
    region: z
      .string()
      .describe(
        'The region of the bucket, such as eu-central-1. A server of your own usually has us-east-1.',
      ),
    prefix: z.string().describe('The beginning of all keys, a template.'),
    aws_access_key_id: secret(z.string().nullish()).describe('The access key. Runs need it.'),
    aws_secret_access_key: secret(z.string().nullish()).describe(
      'The secret of the access key. Runs need it.',
    ),
    endpoint_url: z.string().nullish().describe('The URL of an S3-compatible server. By default AWS.'),
    use_virtual_style_addressing: z
      .boolean()
      .default(false)
      .describe('Whether the bucket is part of the host name instead of the path.'),
    encryption: z.string().nullish().describe('The encryption at the server: AES256 or aws:kms.'),
    kms_key_id: z.string().nullish().describe('The key for aws:kms. By default the key of the account.'),
    ...fileFields,
  })
  .superRefine((config, context) => {
    const empty = (['bucket_name', 'region', 'prefix'] as const).filter((key) => config[key].trim() === '');
    const complain = (path: string, message: string) =>
      context.addIssue({ code: 'custom', path: [path], message });
    if (empty.length > 0) {
      complain(empty[0] as string, `The following inputs are empty: ${listText(empty)}`);
      return;
    }
    checkFileFields(config, context);
    const { bucket_name: bucket, region, endpoint_url: endpoint, encryption, kms_key_id: key } = config;
    if (!/^[A-Za-z0-9][A-Za-z0-9._-]{1,253}[A-Za-z0-9]$/.test(bucket) || bucket.includes('..'))
      complain('bucket_name', `bucket_name: ${JSON.stringify(bucket)} is no name of a bucket`);
    if (!/^[A-Za-z0-9-]{1,64}$/.test(region))
      complain('region', `region: ${JSON.stringify(region)} is no name of a region`);
    if (endpoint) {
      const url = URL.parse(endpoint);
      // The message does not repeat the URL, since it may contain a password.
      if (!url || !/^https?:$/.test(url.protocol) || url.username || url.password || url.search || url.hash)
        complain(
          'endpoint_url',
          'endpoint_url must be an http or https URL without user, password and query',
        );
    }
    if (encryption && !ENCRYPTIONS.includes(encryption)) {
      complain(
        'encryption',
        `Encryption ${encryption} is not supported. Supported encryptions are ${listText(ENCRYPTIONS)}`,
      );
    }
    if (key && encryption !== 'aws:kms') complain('kms_key_id', 'kms_key_id needs the encryption aws:kms');
    if (!config.aws_access_key_id !== !config.aws_secret_access_key) {
      complain(
        config.aws_access_key_id ? 'aws_secret_access_key' : 'aws_access_key_id',
        'aws_access_key_id and aws_secret_access_key belong together: one of them is missing',
      );
    }
  });

export type S3Config = z.output<typeof s3Fields>;

/** The encryption, as every request that creates an object states it. */
export function encryptionOf(config: S3Config) {
  return {
    ...(config.encryption ? { ServerSideEncryption: config.encryption as 'AES256' } : {}),
    ...(config.kms_key_id ? { SSEKMSKeyId: config.kms_key_id } : {}),
  };
}
