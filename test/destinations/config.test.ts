import { describe, expect, test } from '@jest/globals';
import { DestinationConfigError } from '../../destinations/errors.ts';
import { DESTINATION_TYPES, requireQuery } from '../../destinations/registry.ts';
import { checkSettings, patchSettings, shownSettings, testSteps } from '../../destinations/settings.ts';

const S3 = { bucket_name: 'lake', region: 'eu-west-1', prefix: 'ph/{table}/' };
const POSTGRES = { user: 'writer', password: 'canary-password', host: 'db.test', database: 'lake' };
const AZURE = { container_name: 'lake', account_name: 'sea' };
const GOOGLE = { bucket_name: 'lake' };
const HTTP = { url: 'https://other.test/batch/', token: 'phc_canary' };
const FILE = { directory: 'lake' };

const valid: [type: string, config: Record<string, unknown>][] = [
  ['S3', S3],
  ['AwsS3', S3],
  ['S3Compatible', { ...S3, endpoint_url: 'http://s3.test:9000' }],
  ['AzureBlob', AZURE],
  ['GoogleCloudStorage', GOOGLE],
  ['Postgres', POSTGRES],
  ['HTTP', HTTP],
  ['File', FILE],
  ['NoOp', {}],
];

test('every type is known', () => {
  expect([...DESTINATION_TYPES].sort()).toEqual(valid.map(([type]) => type).sort());
});

test.each(valid)('%s: what is required is enough, and nothing is added', (type, config) => {
  expect(checkSettings({ type, config })).toEqual({ type, config });
});

const everything: [type: string, keys: string[]][] = [
  [
    'S3',
    [
      'aws_access_key_id',
      'aws_secret_access_key',
      'bucket_name',
      'compression',
      'encryption',
      'endpoint_url',
      'exclude_events',
      'file_format',
      'include_events',
      'kms_key_id',
      'max_file_size_mb',
      'prefix',
      'region',
      'use_virtual_style_addressing',
    ],
  ],
  [
    'Postgres',
    [
      'database',
      'exclude_events',
      'has_self_signed_cert',
      'host',
      'include_events',
      'password',
      'port',
      'schema',
      'table_name',
      'user',
    ],
  ],
  [
    'AzureBlob',
    [
      'account_key',
      'account_name',
      'compression',
      'connection_string',
      'container_name',
      'endpoint_url',
      'exclude_events',
      'file_format',
      'include_events',
      'max_file_size_mb',
      'prefix',
      'sas_token',
    ],
  ],
  [
    'GoogleCloudStorage',
    [
      'bucket_name',
      'compression',
      'endpoint_url',
      'exclude_events',
      'file_format',
      'hmac_access_key',
      'hmac_secret',
      'include_events',
      'max_file_size_mb',
      'prefix',
      'service_account_key',
    ],
  ],
  ['HTTP', ['exclude_events', 'include_events', 'token', 'url']],
  [
    'File',
    [
      'compression',
      'directory',
      'exclude_events',
      'file_format',
      'include_events',
      'max_file_size_mb',
      'prefix',
    ],
  ],
  ['NoOp', ['arg', 'exclude_events', 'include_events']],
];
test.each(everything)('%s has exactly its keys', (type, keys) => {
  const config = Object.fromEntries([...keys, 'no_such_key'].map((key) => [key, null]));
  expect(() => checkSettings({ type, config })).toThrow("Configuration has unknown field/s: 'no_such_key'");
});

const refused: [type: string, config: unknown, message: string][] = [
  ['Snowflake', {}, '"Snowflake" is not a valid choice.'],
  ['s3', S3, '"s3" is not a valid choice.'],
  ['S3', [], "Configuration has invalid type: got 'list', expected 'dict'"],
  ['S3', null, "Configuration has invalid type: got 'NoneType', expected 'dict'"],
  ['S3', { ...S3, zeta: 1, alpha: 2 }, "Configuration has unknown field/s: 'alpha', 'zeta'"],
  ['S3', { alpha: 2 }, "Configuration has unknown field/s: 'alpha'"],
  ['S3', JSON.parse('{"__proto__": 1}'), "Configuration has unknown field/s: '__proto__'"],
  ['S3', { constructor: 1 }, "Configuration has unknown field/s: 'constructor'"],
  ['S3', { bucket_name: 'lake', region: 'x' }, "Configuration missing required field: 'prefix'"],
  ['S3', {}, "Configuration missing required field: 'bucket_name'"],
  ['S3', { ...S3, bucket_name: 5 }, "Configuration has invalid type: got 'int', expected 'str'"],
  ['S3', { ...S3, bucket_name: null }, "Configuration has invalid type: got 'NoneType', expected 'str'"],
  ['S3', { ...S3, max_file_size_mb: 'large' }, "Configuration has invalid type: got 'str', expected 'int'"],
  ['S3', { ...S3, max_file_size_mb: 1.5 }, "Configuration has invalid type: got 'float', expected 'int'"],
  [
    'S3',
    { ...S3, use_virtual_style_addressing: 'yes' },
    "Configuration has invalid type: got 'str', expected 'bool'",
  ],
  [
    'S3',
    { ...S3, use_virtual_style_addressing: 1 },
    "Configuration has invalid type: got 'int', expected 'bool'",
  ],
  ['S3', { ...S3, include_events: 'a' }, "Configuration has invalid type: got 'str', expected 'list'"],
  ['S3', { ...S3, exclude_events: [1] }, "Configuration has invalid type: got 'int', expected 'str'"],
  ['S3', { ...S3, exclude_events: {} }, "Configuration has invalid type: got 'dict', expected 'list'"],
  [
    'S3',
    { ...S3, bucket_name: ' ', prefix: '' },
    "The following inputs are empty: ['bucket_name', 'prefix']",
  ],
  [
    'S3',
    { ...S3, file_format: 'Avro' },
    "File format Avro is not supported. Supported file formats are ['Parquet', 'JSONLines', 'CSV']",
  ],
  ['S3', { ...S3, file_format: 'toString' }, 'File format toString is not supported.'],
  [
    'S3',
    { ...S3, file_format: 'Parquet', compression: 'bzip2' },
    "Compression bzip2 is not supported for file format Parquet. Supported compressions are ['zstd', 'lz4', 'snappy', 'gzip', 'brotli']",
  ],
  [
    'File',
    { ...FILE, compression: 'snappy' },
    "Compression snappy is not supported for file format JSONLines. Supported compressions are ['gzip', 'brotli', 'zstd']",
  ],
  ['S3', { ...S3, max_file_size_mb: 0 }, 'max_file_size_mb must be at least 1, not 0'],
  ['S3', { ...S3, prefix: '{tabel}' }, "The prefix has the unknown variable '{tabel}'"],
  ['S3', { ...S3, prefix: '../x' }, "must not have the segments '.' and '..'"],
  ['S3', { ...S3, bucket_name: 'a/b' }, 'bucket_name: "a/b" is not a valid bucket name'],
  ['S3', { ...S3, region: 'eu.evil.test/' }, 'is not a valid region name'],
  ['S3', { ...S3, endpoint_url: 'ftp://x' }, 'endpoint_url must be an http or https URL'],
  [
    'S3',
    { ...S3, endpoint_url: 'https://me:canary-password@x' },
    'endpoint_url must be an http or https URL',
  ],
  [
    'S3',
    { ...S3, encryption: 'rot13' },
    "Encryption rot13 is not supported. Supported encryptions are ['AES256', 'aws:kms']",
  ],
  ['S3', { ...S3, kms_key_id: 'k' }, 'kms_key_id requires the encryption aws:kms'],
  [
    'S3',
    { ...S3, aws_access_key_id: 'AKIA' },
    'aws_access_key_id and aws_secret_access_key must be set together',
  ],
  ['AzureBlob', { account_name: 'sea' }, "Configuration missing required field: 'container_name'"],
  ['AzureBlob', { container_name: 'lake' }, "Configuration missing required field: 'account_name'"],
  ['AzureBlob', { ...AZURE, container_name: 'a--b' }, 'is not a valid name of a container'],
  ['AzureBlob', { ...AZURE, container_name: 'Lake' }, 'is not a valid name of a container'],
  ['AzureBlob', { ...AZURE, account_name: 'a.evil/' }, 'is not a valid name of an account'],
  ['AzureBlob', { ...AZURE, account_key: 'k', sas_token: 's' }, 'account_key and sas_token cannot be set'],
  ['AzureBlob', { ...AZURE, endpoint_url: 'https://x/?sig=y' }, 'endpoint_url must be an http or https URL'],
  ['GoogleCloudStorage', {}, "Configuration missing required field: 'bucket_name'"],
  ['GoogleCloudStorage', { bucket_name: ' ' }, "The following inputs are empty: ['bucket_name']"],
  ['GoogleCloudStorage', { bucket_name: 'Lake' }, 'is not a valid bucket name'],
  ['GoogleCloudStorage', { bucket_name: 'a..b' }, 'is not a valid bucket name'],
  ['GoogleCloudStorage', { ...GOOGLE, endpoint_url: 'https://u:canary-password@x' }, 'endpoint_url must be'],
  [
    'GoogleCloudStorage',
    { ...GOOGLE, hmac_access_key: 'GOOG1EACCESS' },
    'hmac_access_key and hmac_secret must be set together',
  ],
  [
    'GoogleCloudStorage',
    { ...GOOGLE, hmac_access_key: 'a/b c, d', hmac_secret: 's' },
    'hmac_access_key is not the access key of an HMAC key',
  ],
  ['GoogleCloudStorage', { ...GOOGLE, service_account_key: 'canary' }, 'service_account_key: The key is not'],
  ['Postgres', { ...POSTGRES, password: undefined }, "Configuration missing required field: 'password'"],
  ['Postgres', { ...POSTGRES, port: '5432x' }, "Configuration has invalid type: got 'str', expected 'int'"],
  ['Postgres', { ...POSTGRES, port: 70_000 }, 'port must be between 1 and 65535, not 70000'],
  [
    'Postgres',
    { ...POSTGRES, host: '/var/run/postgresql' },
    'host must be the name or the address of a host',
  ],
  ['Postgres', { ...POSTGRES, host: 'a,b' }, 'host must be the name or the address of a host'],
  ['Postgres', { ...POSTGRES, table_name: 'x'.repeat(64) }, 'table_name must have at most 63 bytes'],
  ['Postgres', { ...POSTGRES, user: '' }, "The following inputs are empty: ['user']"],
  ['HTTP', { ...HTTP, url: 'not a url' }, 'Invalid destination URL: '],
  [
    'HTTP',
    { ...HTTP, url: 'file:///etc/passwd' },
    'Invalid destination URL: file: is neither http: nor https:',
  ],
  [
    'HTTP',
    { ...HTTP, url: 'https://u:canary-password@x/' },
    'Invalid destination URL: it contains a user name or password',
  ],
  ['HTTP', { ...HTTP, token: '' }, "The following inputs are empty: ['token']"],
  [
    'S3',
    { ...S3, aws_access_key_id: '', aws_secret_access_key: '  ' },
    "The following inputs are empty: ['aws_access_key_id', 'aws_secret_access_key']",
  ],
  ['AzureBlob', { ...AZURE, account_key: '' }, "The following inputs are empty: ['account_key']"],
  ['AzureBlob', { ...AZURE, sas_token: ' ' }, "The following inputs are empty: ['sas_token']"],
  ['AzureBlob', { ...AZURE, connection_string: '' }, "The following inputs are empty: ['connection_string']"],
  [
    'GoogleCloudStorage',
    { ...GOOGLE, service_account_key: '', hmac_access_key: '', hmac_secret: '' },
    "The following inputs are empty: ['service_account_key', 'hmac_access_key', 'hmac_secret']",
  ],
  ['File', { ...FILE, directory: '../x' }, "directory must not have the segment '..'"],
  ['File', { ...FILE, directory: '/etc' }, 'directory must be relative'],
  ['File', { ...FILE, directory: '' }, "The following inputs are empty: ['directory']"],
  ['File', { ...FILE, directory: 'a\u0000b' }, 'directory must not have control characters'],
  ['NoOp', { url: 'x' }, "Configuration has unknown field/s: 'url'"],
];
test.each(refused)('%s %j: %s', (type, config, message) => {
  const check = () => checkSettings({ type, config: config as Record<string, unknown> });
  expect(check).toThrow(DestinationConfigError);
  expect(check).toThrow(message);
  expect(check).not.toThrow('canary');
});

test('a server that asks for no password may be given a blank one', () => {
  const settings = { type: 'Postgres', config: { ...POSTGRES, password: '' } };
  expect(checkSettings(settings)).toEqual(settings);
});

test('texts of forms become numbers and booleans', () => {
  const { config } = checkSettings({
    type: 'S3',
    config: { ...S3, max_file_size_mb: ' 50 ', use_virtual_style_addressing: 'True', compression: null },
  });
  expect(config).toEqual({
    ...S3,
    max_file_size_mb: 50,
    use_virtual_style_addressing: true,
    compression: null,
  });
  expect(checkSettings({ type: 'Postgres', config: { ...POSTGRES, port: '6432' } }).config.port).toBe(6432);
});

describe('a PATCH', () => {
  const stored = { type: 'Postgres', config: { ...POSTGRES, port: 6432 } };

  test('keeps what it does not name, secrets among it', () => {
    expect(patchSettings(stored, { type: 'Postgres', config: { table_name: 'other' } }).config).toEqual({
      ...POSTGRES,
      port: 6432,
      table_name: 'other',
    });
  });

  test('null and other values take the place of the old ones', () => {
    const s3 = { type: 'S3', config: { ...S3, compression: 'gzip', include_events: ['a'] } };
    const sent = { type: 'S3', config: { compression: null, include_events: ['b', 'c'] } };
    expect(patchSettings(s3, sent).config).toEqual({ ...S3, compression: null, include_events: ['b', 'c'] });
  });

  test('is checked as a whole', () => {
    expect(() => patchSettings(stored, { type: 'Postgres', config: { password: null } })).toThrow(
      "got 'NoneType', expected 'str'",
    );
    expect(() =>
      patchSettings(stored, { type: 'Postgres', config: JSON.parse('{"__proto__":{"a":1}}') }),
    ).toThrow("unknown field/s: '__proto__'");
    expect(({} as Record<string, unknown>).a).toBeUndefined();
  });

  test('does not change the type, but for another name of the same', () => {
    expect(() => patchSettings(stored, { type: 'S3', config: S3 })).toThrow(
      "Cannot change destination type from 'Postgres' to 'S3'. Delete this batch export and create a new one with the new destination type.",
    );
    expect(patchSettings({ type: 'S3', config: S3 }, { type: 'AwsS3', config: {} }).type).toBe('AwsS3');
  });
});

describe('answers', () => {
  test.each([
    ['S3', { ...S3, aws_access_key_id: 'canary', aws_secret_access_key: 'canary' }, S3],
    ['Postgres', POSTGRES, { host: 'db.test', database: 'lake' }],
    ['HTTP', HTTP, { url: HTTP.url }],
    ['File', FILE, FILE],
  ])('%s: show no secret', (type, config, shown) => {
    expect(shownSettings({ type, config })).toEqual({ type, config: shown });
  });

  test('show nothing of a type that is not known any more', () => {
    expect(shownSettings({ type: 'Gone', config: { password: 'canary' } })).toEqual({
      type: 'Gone',
      config: {},
    });
  });

  test('HTTP takes no query', () => {
    expect(() => requireQuery('HTTP')).toThrow(
      "HTTP batch exports send rows as they are: 'hogql_query' is not supported",
    );
    expect(() => requireQuery('S3')).not.toThrow();
  });

  test('steps of a test are shown before they are run; NoOp has none', () => {
    expect(testSteps('AwsS3')?.map(({ name, result }) => [name, result])).toEqual([
      ['Check S3 bucket exists', null],
      ['Write to S3 bucket', null],
    ]);
    expect(testSteps('NoOp')).toBeUndefined();
    expect(testSteps('Gone')).toBeUndefined();
  });
});
