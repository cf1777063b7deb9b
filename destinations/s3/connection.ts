import { S3Client, type S3ClientConfig } from '@aws-sdk/client-s3';
import type { AgentPair } from '../../egress/sockets.ts';
import { retryAfter } from '../../values/retry-after.ts';
import { LongAnswerError } from '../answers.ts';
import type { StoreWork, Surroundings } from '../destination.ts';
import { DestinationError, type DestinationErrorCode, networkError, withoutSecrets } from '../errors.ts';
import { type RequestOptions, type Requests, requestsTo } from '../requests.ts';
import { isCut, meaningOf } from '../statuses.ts';
import { boundAnswers } from './bound-answers.ts';
import type { S3Config } from './config.ts';

/** Sends commands to the server. They end when the time of the request is over. */
export interface S3Sender {
  send: S3Client['send'];
}

export interface S3Connection extends Omit<Requests, 'send'> {
  config: S3Config;
  /** Makes a request as `Requests` does. `doing` names the right that it needs. */
  send<T>(
    request: (client: S3Sender, extend: (limit: number) => void) => Promise<T>,
    options: RequestOptions,
  ): Promise<T>;
  destroy(): void;
}

export function connectS3(config: S3Config, surroundings: Surroundings, work: StoreWork = {}): S3Connection {
  const { aws_access_key_id: accessKeyId, aws_secret_access_key: secretAccessKey } = config;
  if (!accessKeyId || !secretAccessKey) {
    throw new DestinationError(
      'not-configured',
      `${place(config)}: aws_access_key_id and aws_secret_access_key are not set. The credentials of the machine that Sluice runs on are not used for exports.`,
    );
  }
  const requests = requestsTo(serverOf(config), surroundings, work, (error, { key, doing }) =>
    s3Error(error, config, place(config, key), doing),
  );
  const agents = surroundings.egress.agents(32);
  const options: S3ClientConfig = {
    region: config.region,
    credentials: { accessKeyId, secretAccessKey },
    ...(config.endpoint_url ? { endpoint: config.endpoint_url } : {}),
    // The machine's own settings for S3 must not decide where a user's data goes.
    ignoreConfiguredEndpointUrls: true,
    forcePathStyle: Boolean(config.endpoint_url) && !config.use_virtual_style_addressing,
    useDualstackEndpoint: false,
    useFipsEndpoint: false,
    useArnRegion: false,
    disableS3ExpressSessionAuth: true,
    followRegionRedirects: false,
    userAgentAppId: 'sluice',
    requestChecksumCalculation: 'WHEN_SUPPORTED',
    responseChecksumValidation: 'WHEN_REQUIRED',
    // patiently() repeats requests instead: it knows which errors pass, waits as servers ask, and obeys the signal.
    maxAttempts: 1,
    retryMode: 'standard',
    requestHandler: {
      ...agentsOf(agents),
      // The agents limit the time of connecting, and send() that of the request.
      socketTimeout: requests.limits.idle,
    },
    logger: { trace() {}, debug() {}, info() {}, warn() {}, error() {} },
  };
  const client = new S3Client(options);
  const requestHandler = { ...agentsOf(agents), socketTimeout: 0 };
  const silentClient = new S3Client({ ...options, requestHandler });
  for (const one of [client, silentClient]) boundAnswers(one);

  return {
    ...requests,
    config,
    send: (request, options) =>
      requests.send((abortSignal, extend) => {
        const by = options.mayBeSilent ? silentClient : client;
        const send = ((command) => by.send(command, { abortSignal })) as S3Sender['send'];
        return request({ send }, extend);
      }, options),
    destroy() {
      client.destroy();
      silentClient.destroy();
      agents.destroy();
    },
  };
}

/** Error names of S3 servers that the operator has to act on. */
const OPERATOR: Record<string, [DestinationErrorCode, string]> = {
  NoSuchBucket: ['missing', 'there is no such bucket'],
  InvalidBucketName: ['missing', 'this is no name of a bucket'],
  PermanentRedirect: ['mismatch', 'the bucket is in another region; set region to that one'],
  AuthorizationHeaderMalformed: ['mismatch', 'the bucket is in another region; set region to that one'],
  IllegalLocationConstraintException: ['mismatch', 'the bucket is in another region; set region to that one'],
  InvalidAccessKeyId: ['denied', 'aws_access_key_id is not known there'],
  SignatureDoesNotMatch: ['denied', 'aws_secret_access_key does not belong to aws_access_key_id'],
  ExpiredToken: ['denied', 'the credentials have expired'],
  AccessDenied: ['denied', 'access denied'],
  RequestTimeTooSkewed: ['denied', 'the clock of this machine differs too much from that of the server'],
  NotImplemented: ['rejected', 'the server does not implement this'],
  EntityTooLarge: ['rejected', 'the server refuses files of this size; set max_file_size_mb'],
};

const SOON: Record<string, DestinationErrorCode> = {
  SlowDown: 'throttled',
  Throttling: 'throttled',
  ThrottlingException: 'throttled',
  TooManyRequests: 'throttled',
  RequestLimitExceeded: 'throttled',
  RequestTimeout: 'timed-out',
  TimeoutError: 'timed-out',
  InternalError: 'unavailable',
  ServiceUnavailable: 'unavailable',
  ConditionalRequestConflict: 'unavailable',
  OperationAborted: 'unavailable',
  // The bytes were damaged on their way.
  BadDigest: 'interrupted',
  IncompleteBody: 'interrupted',
  XAmzContentSHA256Mismatch: 'interrupted',
  XAmzContentChecksumMismatch: 'interrupted',
};

interface ServiceError extends Error {
  $metadata?: { httpStatusCode?: number };
  $response?: { headers?: Record<string, string> };
}

export const statusOf = (error: unknown) => (error as ServiceError).$metadata?.httpStatusCode;

export const conditionOf = (seen: string | undefined) =>
  seen === undefined ? { IfNoneMatch: '*' } : { IfMatch: seen };

/** Whether a conditional request failed because the object has changed. */
export const isOutdated = (error: unknown, seen: string | undefined) =>
  statusOf(error) === 412 || (statusOf(error) === 404 && seen !== undefined);

/** Whether the server does not support conditional requests. */
export const isConditionUnknown = (error: unknown) =>
  statusOf(error) === 501 || (error as Error).name === 'NotImplemented';

const agentsOf = ({ httpAgent, httpsAgent }: AgentPair) => ({ httpAgent, httpsAgent });

/** The server, as messages name it. */
const serverOf = ({ endpoint_url: endpoint, region }: S3Config) =>
  endpoint ? (URL.parse(endpoint)?.host ?? endpoint) : `AWS (${region})`;

export function place(config: Pick<S3Config, 'bucket_name'>, key?: string): string {
  return `S3 bucket ${JSON.stringify(config.bucket_name)}${key === undefined ? '' : `, ${JSON.stringify(key)}`}`;
}

/** Turns an error of the S3 client into a DestinationError. `doing` names the right that the request needs. */
function s3Error(error: unknown, config: S3Config, where: string, doing: string): DestinationError {
  if (error instanceof DestinationError) return error;
  const { name, message } = error as ServiceError;
  const status = statusOf(error);
  const make = (code: DestinationErrorCode, text: string, retryAfterMilliseconds?: number) =>
    new DestinationError(code, `${where}: ${text} (${doing})`, { cause: error, retryAfterMilliseconds });
  // The client calls it so when the socket was idle for too long, and also when the connection was cut.
  if (name === 'TimeoutError' && status === undefined)
    return networkError(error, where) ?? make('timed-out', 'the server fell silent');
  if (error instanceof LongAnswerError) return make('unavailable', error.message);
  // The server chooses the name.
  const soon = Object.hasOwn(SOON, name) ? SOON[name] : undefined;
  const wait = retryAfter((error as ServiceError).$response?.headers?.['retry-after'], Date.now());
  if (soon) return make(soon, `the server says ${name}`, wait);
  const known = Object.hasOwn(OPERATOR, name) ? OPERATOR[name] : undefined;
  if (known) return make(known[0], known[1]);
  // The client found that an answer does not match its checksum, or ends too early.
  if (isCut(message) || /checksum mismatch/i.test(message))
    return make('interrupted', 'the connection was cut, or the answer was damaged');
  const below = networkError(error, where);
  if (below) return below;
  const meaning = meaningOf(status);
  if (meaning) return make(...meaning, wait);
  if (status !== undefined && status >= 300 && status < 400)
    return make('mismatch', `the server redirects (${status}); check region and endpoint_url`);
  const secrets = [config.aws_access_key_id, config.aws_secret_access_key].filter(
    (one) => typeof one === 'string',
  );
  const said = withoutSecrets(`${name}: ${message}`, secrets).slice(0, 500);
  if (status !== undefined && status >= 400)
    return make('rejected', `the server refused the request, ${said}`);
  // The answer is not XML of S3, or is cut off.
  if (status !== undefined || /deserialization|unexpected end|xml/i.test(message))
    return make('interrupted', 'the answer could not be read');
  return make('unexpected', said);
}
