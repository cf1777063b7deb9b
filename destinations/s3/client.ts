import { S3Client } from '@aws-sdk/client-s3';
import type { Surroundings } from '../destination.ts';
import { DestinationError } from '../errors.ts';
import { PATIENCE, patiently } from '../retry.ts';
import type { S3Config } from './config.ts';
import { place, s3Error } from './errors.ts';

const CONNECT_MILLISECONDS = 10_000;
const GRACE_MILLISECONDS = 5_000;
const IDLE_MILLISECONDS = 30_000;
/** For one request with its answer: a part that drips in takes longer than sending it again. */
const REQUEST_MILLISECONDS = 300_000;

interface SendOptions {
  key?: string;
  doing: string;
  signal?: AbortSignal | undefined;
  /** Fewer than usual. */
  attempts?: number;
  onRetry?: () => void;
}

export interface S3Connection {
  config: S3Config;
  /** How long requests on their way may take to end when they are no longer wanted. */
  graceMilliseconds: number;
  /** Sends until it is answered or there is no point in it. `doing` names the right that it needs. */
  send<T>(
    request: (client: S3Client, signal: AbortSignal | undefined) => Promise<T>,
    options: SendOptions,
  ): Promise<T>;
  destroy(): void;
}

export function connectS3(config: S3Config, surroundings: Surroundings): S3Connection {
  const { aws_access_key_id: accessKeyId, aws_secret_access_key: secretAccessKey } = config;
  if (!accessKeyId || !secretAccessKey) {
    throw new DestinationError(
      'not-configured',
      `${place(config)}: aws_access_key_id and aws_secret_access_key are not set. The credentials of the machine that Sluice runs on are not used for exports.`,
    );
  }
  const patience = surroundings.patience ?? PATIENCE;
  const agents = surroundings.egress.agents(32);
  const client = new S3Client({
    region: config.region,
    credentials: { accessKeyId, secretAccessKey },
    ...(config.endpoint_url ? { endpoint: config.endpoint_url } : {}),
    // Nothing of the machine's own settings for S3 has a say in where a user's data goes.
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
    // patiently() repeats requests: it knows which errors end, waits as servers ask, and stops with its signal.
    maxAttempts: 1,
    retryMode: 'standard',
    requestHandler: {
      httpAgent: agents.httpAgent,
      httpsAgent: agents.httpsAgent,
      connectionTimeout: CONNECT_MILLISECONDS,
      socketTimeout: surroundings.idleMilliseconds ?? IDLE_MILLISECONDS,
      requestTimeout: REQUEST_MILLISECONDS,
      throwOnRequestTimeout: true,
    },
    logger: { trace() {}, debug() {}, info() {}, warn() {}, error() {} },
  });
  return {
    config,
    graceMilliseconds: Math.min(GRACE_MILLISECONDS, surroundings.idleMilliseconds ?? IDLE_MILLISECONDS),
    send: (request, { key, doing, signal, attempts, onRetry }) =>
      patiently(
        async (attempt) => {
          if (attempt > 1) onRetry?.();
          try {
            return await request(client, signal);
          } catch (error) {
            signal?.throwIfAborted();
            throw s3Error(error, config, place(config, key), doing);
          }
        },
        signal,
        attempts === undefined ? patience : { ...patience, attempts: Math.min(attempts, patience.attempts) },
      ),
    destroy() {
      client.destroy();
      agents.destroy();
    },
  };
}
