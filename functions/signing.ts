// Signs requests for programs, which do not see the keys. A signature covers the body as it is sent, and belongs to one
// attempt: receivers take no old ones.
import { createHash, createHmac, type Hash, type Hmac, randomUUID } from 'node:crypto';
import { SignatureV4 } from '@smithy/signature-v4';
import type { OutgoingRequest } from './rules/request.ts';

/** A pair of keys for AWS. */
export interface AwsKeys {
  accessKeyId: string;
  secretAccessKey: string;
  sessionToken: string | null;
  /** Null: the program names it. */
  region: string | null;
}

/** How a program asks for a signature. Names of inputs stand for their values. */
export type Signing =
  | { scheme: 'standard_webhooks'; secretInput: string }
  | {
      scheme: 'aws_sigv4';
      service: string;
      region: string | null;
      keys: { integrationInput: string } | { accessKeyIdInput: string; secretAccessKeyInput: string };
    };

export interface SigningContext {
  /** The value of an input. */
  input(key: string): unknown;
  /** The keys of the integration that an input names. Throws if they may not be used for the host of the URL. */
  awsKeys(input: string, url: string): AwsKeys;
}

type Options = Record<string, unknown>;

/** Reads the signature that the options of a request ask for. Null: none. */
export function signingOf(options: Options): Signing | null {
  const { standard_webhooks: webhooks, aws_sigv4: aws } = options;
  const isAsked = (one: unknown) => one !== undefined && one !== null;
  if (isAsked(webhooks) && isAsked(aws)) {
    throw new TypeError('a request has one signature: `standard_webhooks` or `aws_sigv4`');
  }
  if (isAsked(webhooks)) {
    const text = textsOf('standard_webhooks', webhooks);
    return { scheme: 'standard_webhooks', secretInput: text('secret_input') };
  }
  if (!isAsked(aws)) return null;
  const text = textsOf('aws_sigv4', aws);
  const given = aws as Options;
  return {
    scheme: 'aws_sigv4',
    service: text('service'),
    region: isAsked(given.region) ? text('region') : null,
    keys: isAsked(given.integration_input)
      ? { integrationInput: text('integration_input') }
      : {
          accessKeyIdInput: text('access_key_id_input'),
          secretAccessKeyInput: text('secret_access_key_input'),
        },
  };
}

function textsOf(option: string, given: unknown): (field: string) => string {
  if (typeof given !== 'object' || given === null) throw new TypeError(`\`${option}\` must be an object`);
  return (field) => {
    const value = (given as Options)[field];
    if (typeof value === 'string' && value !== '') return value;
    throw new TypeError(`\`${option}\` needs \`${field}\`, as text`);
  };
}

/** Returns the headers of a request with those of its signature. */
export function signatureFor(
  signing: Signing,
  method: string,
  request: OutgoingRequest,
  context: SigningContext,
  at = new Date(),
): Promise<OutgoingRequest['headers']> {
  return signing.scheme === 'aws_sigv4'
    ? awsHeaders(signing, method, request, context, at)
    : Promise.resolve(webhookHeaders(signing, request, context, at));
}

/** Returns the value of an input that holds a key. */
function keyIn({ input }: SigningContext, name: string): string {
  const value = input(name);
  if (typeof value === 'string' && value !== '') return value;
  throw new TypeError(`the input \`${name}\`, which signs the request, has no value`);
}

const PREFIX = 'whsec_';
const BASE64 = /^[A-Za-z0-9+/_-]+={0,2}$/;

function webhookHeaders(
  { secretInput }: Signing & { scheme: 'standard_webhooks' },
  { headers, body }: OutgoingRequest,
  context: SigningContext,
  at: Date,
): OutgoingRequest['headers'] {
  const secret = keyIn(context, secretInput).trim();
  const encoded = secret.startsWith(PREFIX) ? secret.slice(PREFIX.length) : secret;
  const key = Buffer.from(encoded, 'base64');
  if (!BASE64.test(encoded) || key.length === 0) {
    throw new TypeError(`the input \`${secretInput}\` is not a key in base64, such as ${PREFIX}…`);
  }
  const id = `msg_${randomUUID().replaceAll('-', '')}`;
  const seconds = String(Math.floor(at.getTime() / 1_000));
  const signature = createHmac('sha256', key)
    .update(`${id}.${seconds}.${body ?? ''}`)
    .digest('base64');
  return {
    ...without(headers, ['webhook-id', 'webhook-timestamp', 'webhook-signature']),
    ...{ 'webhook-id': id, 'webhook-timestamp': seconds, 'webhook-signature': `v1,${signature}` },
  };
}

const without = (headers: OutgoingRequest['headers'], names: readonly string[]) =>
  Object.fromEntries(Object.entries(headers).filter(([name]) => !names.includes(name.toLowerCase())));

/** SHA-256 as the signer wants it. */
class Sha256 {
  #hash: Hash | Hmac;
  readonly #fresh: () => Hash | Hmac;

  constructor(secret?: string | ArrayBuffer | ArrayBufferView) {
    this.#fresh = () =>
      secret === undefined ? createHash('sha256') : createHmac('sha256', secret as string | Uint8Array);
    this.#hash = this.#fresh();
  }

  update(data: Uint8Array | string): void {
    this.#hash.update(data);
  }

  digest(): Promise<Uint8Array> {
    return Promise.resolve(this.#hash.digest());
  }

  reset(): void {
    this.#hash = this.#fresh();
  }
}

const DATES = ['x-amz-date', 'date', 'authorization', 'x-amz-security-token', 'x-amz-content-sha256'];

async function awsHeaders(
  { service, region, keys }: Signing & { scheme: 'aws_sigv4' },
  method: string,
  { url, headers, body }: OutgoingRequest,
  context: SigningContext,
  at: Date,
): Promise<OutgoingRequest['headers']> {
  const found: AwsKeys =
    'integrationInput' in keys
      ? context.awsKeys(keys.integrationInput, url)
      : {
          accessKeyId: keyIn(context, keys.accessKeyIdInput),
          secretAccessKey: keyIn(context, keys.secretAccessKeyInput),
          ...{ sessionToken: null, region: null },
        };
  const where = region ?? found.region;
  if (!where) throw new TypeError('`aws_sigv4` needs `region`, as text');
  const target = new URL(url);
  const signer = new SignatureV4({
    ...{ service, region: where, sha256: Sha256, uriEscapePath: service !== 's3' },
    credentials: {
      ...{ accessKeyId: found.accessKeyId, secretAccessKey: found.secretAccessKey },
      ...(found.sessionToken === null ? {} : { sessionToken: found.sessionToken }),
    },
  });
  const query = Object.fromEntries(
    [...target.searchParams.keys()].map((name) => [name, target.searchParams.getAll(name)]),
  );
  const signed = await signer.sign(
    {
      ...{ method, protocol: target.protocol, hostname: target.hostname, path: target.pathname, query },
      ...(target.port === '' ? {} : { port: Number(target.port) }),
      headers: { ...without(headers, DATES), host: target.host },
      body: body ?? undefined,
    },
    { signingDate: at },
  );
  return without(signed.headers, ['host']);
}
