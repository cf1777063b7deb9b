import {
  AnonymousCredential,
  ContainerClient,
  newPipeline,
  StorageSharedKeyCredential,
} from '@azure/storage-blob';
import { retryAfter } from '../../values/retry-after.ts';
import { LongAnswerError } from '../answers.ts';
import type { StoreWork, Surroundings } from '../destination.ts';
import { DestinationError, type DestinationErrorCode, networkError, withoutSecrets } from '../errors.ts';
import { RedirectedError } from '../guarded-request.ts';
import { type RequestOptions, type Requests, requestsTo } from '../requests.ts';
import { isCut, meaningOf } from '../statuses.ts';
import { type AzureBlobConfig, endpointOf } from './config.ts';
import { guardedHttpClient } from './http-client.ts';

export interface AzureConnection extends Omit<Requests, 'send'> {
  config: AzureBlobConfig;
  /** Makes a request to the container, as `Requests` does. */
  send<T>(
    request: (
      container: ContainerClient,
      abortSignal: AbortSignal,
      extend: (limit: number) => void,
    ) => Promise<T>,
    options: RequestOptions,
  ): Promise<T>;
  destroy(): void;
}

export function connectAzure(
  config: AzureBlobConfig,
  surroundings: Surroundings,
  work: StoreWork = {},
): AzureConnection {
  const { account_name: account, account_key: accountKey, sas_token: sas } = config;
  if (!sas && !(account && accountKey)) {
    throw new DestinationError(
      'not-configured',
      `${place(config)}: set connection_string, or account_name with account_key or sas_token. The credentials of the machine that Sluice runs on are not used for exports.`,
    );
  }
  const endpoint = endpointOf(config);
  const server = URL.parse(endpoint)?.host ?? endpoint;
  const agents = surroundings.egress.agents(32);
  const requests = requestsTo(server, surroundings, work, (error, { key, doing }) =>
    azureError(error, config, place(config, key), doing),
  );
  const credential =
    account && accountKey ? new StorageSharedKeyCredential(account, accountKey) : new AnonymousCredential();
  const query = sas ? `?${sas.replace(/^\?/, '')}` : '';
  const containerBy = (idle: number) =>
    new ContainerClient(
      `${endpoint}/${encodeURIComponent(config.container_name)}${query}`,
      newPipeline(credential, {
        httpClient: guardedHttpClient(agents, idle),
        // patiently() repeats requests instead: it knows which errors pass, waits as servers ask, and obeys the signal.
        retryOptions: { maxTries: 1 },
        userAgentOptions: { userAgentPrefix: 'sluice' },
      }),
    );
  const container = containerBy(requests.limits.idle);
  const silentContainer = containerBy(0);

  return {
    ...requests,
    config,
    send: (request, options) =>
      requests.send(
        (abortSignal, extend) =>
          request(options.mayBeSilent ? silentContainer : container, abortSignal, extend),
        options,
      ),
    destroy: () => agents.destroy(),
  };
}

/** Error codes of Azure that the operator has to act on. */
const OPERATOR: Record<string, [DestinationErrorCode, string]> = {
  ContainerNotFound: ['missing', 'there is no such container'],
  ResourceNotFound: ['missing', 'there is no such container'],
  AuthenticationFailed: ['denied', 'Azure refuses the key or the signature'],
  InvalidAuthenticationInfo: ['denied', 'Azure refuses the key or the signature'],
  NoAuthenticationInformation: ['denied', 'Azure refuses the key or the signature'],
  AuthorizationFailure: ['denied', 'access denied'],
  AuthorizationPermissionMismatch: ['denied', 'the signature does not allow this'],
  AuthorizationSourceIPMismatch: ['denied', 'the signature does not allow this address'],
  AuthorizationProtocolMismatch: ['denied', 'the signature does not allow http'],
  InsufficientAccountPermissions: ['denied', 'access denied'],
  KeyBasedAuthenticationNotPermitted: ['denied', 'the account allows no keys'],
  AccountIsDisabled: ['denied', 'the account is disabled'],
  InvalidBlobType: ['mismatch', 'something else than a block blob is there'],
  InvalidBlobOrBlock: ['mismatch', 'something else than a block blob of Sluice is there'],
  BlobArchived: ['mismatch', 'the blob is in the archive tier'],
  BlobImmutableDueToPolicy: ['rejected', 'a policy keeps the blob from being changed'],
  SnapshotsPresent: ['rejected', 'the blob has snapshots, so it cannot be deleted'],
  RequestBodyTooLarge: ['rejected', 'the server refuses files of this size; set max_file_size_mb'],
  BlockCountExceedsLimit: ['rejected', 'the file has too many blocks; set max_file_size_mb'],
  LeaseIdMissing: ['conflict', 'somebody holds a lease on the blob'],
  ContainerBeingDeleted: ['missing', 'the container is being deleted'],
  ContainerDisabled: ['missing', 'the container is disabled'],
};

const SOON: Record<string, DestinationErrorCode> = {
  ServerBusy: 'throttled',
  TooManyRequests: 'throttled',
  IngressOverAccountLimit: 'throttled',
  OperationTimedOut: 'timed-out',
  InternalError: 'unavailable',
  // The bytes were damaged on their way.
  Md5Mismatch: 'interrupted',
};

interface ServiceError extends Error {
  code?: unknown;
  statusCode?: number;
  response?: { headers?: { get(name: string): string | undefined } };
}

export const statusOf = (error: unknown): number | undefined => (error as ServiceError).statusCode;

/** The code of an error. An answer to HEAD has it only among its headers. */
export function codeOf(error: unknown): string {
  const { response, code } = error as ServiceError;
  return response?.headers?.get('x-ms-error-code') ?? (typeof code === 'string' ? code : '');
}

export const conditionOf = (seen: string | undefined) =>
  seen === undefined ? { ifNoneMatch: '*' } : { ifMatch: seen };

/** Whether there is no such blob, though there is its container. */
export const isAbsent = (error: unknown): boolean => codeOf(error) === 'BlobNotFound';

/** Whether a conditional request failed because the blob has changed. */
export const isOutdated = (error: unknown, seen: string | undefined): boolean =>
  ['ConditionNotMet', 'TargetConditionNotMet', 'BlobAlreadyExists'].includes(codeOf(error)) ||
  (isAbsent(error) && seen !== undefined);

export function place(config: Pick<AzureBlobConfig, 'container_name'>, key?: string): string {
  const container = `Azure container ${JSON.stringify(config.container_name)}`;
  return `${container}${key === undefined ? '' : `, ${JSON.stringify(key)}`}`;
}

/** The secrets of a configuration, and the signature alone, as a server may repeat it. */
function secretsOf({ account_key: key, sas_token: sas }: AzureBlobConfig): string[] {
  const signature = sas ? new URLSearchParams(sas).get('sig') : null;
  return [key, sas, signature].filter((one) => typeof one === 'string' && one !== '') as string[];
}

/** Turns an error of the Azure client into a DestinationError. */
function azureError(error: unknown, config: AzureBlobConfig, where: string, doing: string): DestinationError {
  if (error instanceof DestinationError) return error;
  const { name, message } = error as ServiceError;
  const [status, code] = [statusOf(error), codeOf(error)];
  const make = (kind: DestinationErrorCode, text: string, retryAfterMilliseconds?: number) =>
    new DestinationError(kind, `${where}: ${text} (${doing})`, { cause: error, retryAfterMilliseconds });
  if (error instanceof LongAnswerError) return make('unavailable', error.message);
  if (error instanceof RedirectedError) return make('mismatch', `${error.message}; check endpoint_url`);
  // The server chooses the code.
  const soon = Object.hasOwn(SOON, code) ? SOON[code] : undefined;
  const wait = retryAfter((error as ServiceError).response?.headers?.get('retry-after'), Date.now());
  if (soon) return make(soon, `the server says ${code}`, wait);
  const known = Object.hasOwn(OPERATOR, code) ? OPERATOR[code] : undefined;
  if (known) return make(known[0], known[1]);
  if (isCut(message)) return make('interrupted', 'the connection was cut, or the answer was damaged');
  const below = networkError(error, where);
  if (below) return below;
  const meaning = meaningOf(status);
  if (meaning) return make(...meaning, wait);
  const said = withoutSecrets(`${code || name}: ${message}`, secretsOf(config)).slice(0, 500);
  if (status !== undefined && status >= 400)
    return make('rejected', `the server refused the request, ${said}`);
  // The answer is not one of Azure, or is cut off.
  if (status !== undefined || name === 'RestError' || /unexpected end|xml/i.test(message))
    return make('interrupted', 'the answer could not be read');
  return make('unexpected', said);
}
