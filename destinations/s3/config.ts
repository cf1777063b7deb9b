import { z } from 'zod';
import { endpointFault, urlAddress } from '../address.ts';
import { listText, type RawConfig, secret } from '../config.ts';
import { checkFileFields, fileFields } from '../file-options.ts';

const ENCRYPTIONS = ['AES256', 'aws:kms'];

export const s3Fields = z
  .object({
    bucket_name: z.string().describe('Name of the bucket. It must exist.'),
    region: z
      .string()
      .describe('Region of the bucket, such as eu-central-1. S3-compatible servers often use us-east-1.'),
    prefix: z.string().describe('Prefix of all object keys. A template, such as events/{year}/{month}.'),
    aws_access_key_id: secret(z.string().nullish()).describe('Access key ID. A run fails without it.'),
    aws_secret_access_key: secret(z.string().nullish()).describe(
      'Secret access key. A run fails without it.',
    ),
    endpoint_url: z.string().nullish().describe('URL of an S3-compatible server. Without it, AWS.'),
    use_virtual_style_addressing: z
      .boolean()
      .default(false)
      .describe('Put the name of the bucket into the host name instead of the path.'),
    encryption: z
      .string()
      .nullish()
      .describe('Server-side encryption: AES256 or aws:kms. Without it, the default of the bucket.'),
    kms_key_id: z
      .string()
      .nullish()
      .describe("ID of the KMS key for aws:kms. Without it, the account's default key."),
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
      complain('bucket_name', `bucket_name: ${JSON.stringify(bucket)} is not a valid bucket name`);
    if (!/^[A-Za-z0-9-]{1,64}$/.test(region))
      complain('region', `region: ${JSON.stringify(region)} is not a valid region name`);
    const fault = endpoint ? endpointFault(endpoint) : undefined;
    if (fault) complain('endpoint_url', fault);
    if (encryption && !ENCRYPTIONS.includes(encryption)) {
      complain(
        'encryption',
        `Encryption ${encryption} is not supported. Supported encryptions are ${listText(ENCRYPTIONS)}`,
      );
    }
    if (key && encryption !== 'aws:kms') complain('kms_key_id', 'kms_key_id requires the encryption aws:kms');
    if (!config.aws_access_key_id !== !config.aws_secret_access_key) {
      complain(
        config.aws_access_key_id ? 'aws_secret_access_key' : 'aws_access_key_id',
        'aws_access_key_id and aws_secret_access_key must be set together: one of them is missing',
      );
    }
  });

export type S3Config = z.output<typeof s3Fields>;

/**
 * The name of the host that requests go to. On AWS, the region is a part of it; the bucket is too, but all of these
 * hosts are Amazon's. At an endpoint, the region decides nothing, and the bucket only with the virtual style.
 */
export function s3Address(config: RawConfig): RawConfig {
  const { endpoint_url: endpoint, region, bucket_name: bucket } = config;
  if (!endpoint) return { endpoint_url: null, region };
  const isVirtual = Boolean(config.use_virtual_style_addressing);
  return {
    endpoint_url: urlAddress(endpoint),
    use_virtual_style_addressing: isVirtual,
    ...(isVirtual ? { bucket_name: bucket } : {}),
  };
}

/** The bucket and the prefix. All spellings of one server give the same place. */
export function s3Place({ endpoint_url: endpoint, bucket_name: bucket, prefix }: RawConfig) {
  const url = typeof endpoint === 'string' && endpoint !== '' ? URL.parse(endpoint) : null;
  const server = !url || url.hostname.endsWith('.amazonaws.com') ? 'aws' : url.href;
  return { store: `s3 ${server} ${bucket}`, prefix: String(prefix ?? '') };
}

/** The encryption, as every request that creates an object states it. */
export function encryptionOf(config: S3Config) {
  return {
    ...(config.encryption ? { ServerSideEncryption: config.encryption as 'AES256' } : {}),
    ...(config.kms_key_id ? { SSEKMSKeyId: config.kms_key_id } : {}),
  };
}
