import { z } from 'zod';
import { endpointFault, urlAddress } from '../address.ts';
import { listText, type RawConfig, secret } from '../config.ts';
import { DestinationConfigError } from '../errors.ts';
import { checkFileFields, fileFields } from '../file-options.ts';

export const azureBlobFields = z
  .object({
    container_name: z.string().describe('Name of the container. It must exist.'),
    connection_string: secret(z.string().nullish()).describe(
      'Connection string of the storage account. Sluice stores its parts under the next four keys.',
    ),
    account_name: z.string().nullish().describe('Name of the storage account.'),
    account_key: secret(z.string().nullish()).describe('Key of the storage account.'),
    sas_token: secret(z.string().nullish()).describe(
      'Shared access signature, instead of the key. It must allow to read, create, write and delete blobs.',
    ),
    endpoint_url: z
      .string()
      .nullish()
      .describe('URL of the blob service. Without it, that of the account in the public cloud of Azure.'),
    prefix: z
      .string()
      .default('')
      .describe('Prefix of all names of blobs. A template, such as events/{year}/{month}.'),
    ...fileFields,
  })
  .superRefine((config, context) => {
    const complain = (path: string, message: string) =>
      context.addIssue({ code: 'custom', path: [path], message });
    const { container_name: container, account_name: account, endpoint_url: endpoint } = config;
    if (container.trim() === '') {
      complain('container_name', `The following inputs are empty: ${listText(['container_name'])}`);
      return;
    }
    checkFileFields(config, context);
    if (!/^(\$root|\$logs|[a-z0-9](-?[a-z0-9]){2,62})$/.test(container))
      complain(
        'container_name',
        `container_name: ${JSON.stringify(container)} is not a valid name of a container`,
      );
    if (account && !/^[a-z0-9]{3,24}$/.test(account))
      complain('account_name', `account_name: ${JSON.stringify(account)} is not a valid name of an account`);
    const fault = endpoint ? endpointFault(endpoint) : undefined;
    if (fault) complain('endpoint_url', fault);
    if (config.account_key && config.sas_token)
      complain('sas_token', 'account_key and sas_token cannot be set together: one of them is enough');
    if (!account && (config.account_key || !endpoint))
      complain('account_name', "Configuration missing required field: 'account_name'");
  });

export type AzureBlobConfig = z.output<typeof azureBlobFields>;

const MALFORMED = 'connection_string is not a connection string of Azure Storage';

/** Replaces a connection string by its parts, so that they are checked, compared and kept like single ones. */
export function expandConnectionString(config: RawConfig): RawConfig {
  const { connection_string: text, ...rest } = config;
  if (typeof text !== 'string' || text === '') return config;
  const parts = new Map(
    text
      .split(';')
      .map((part) => part.trim())
      .filter((part) => part !== '')
      .map((part): [string, string] => {
        const at = part.indexOf('=');
        // A value may contain more of these signs.
        if (at < 1) throw new DestinationConfigError(MALFORMED, 'connection_string');
        return [part.slice(0, at).toLowerCase(), part.slice(at + 1)];
      }),
  );
  const account = parts.get('accountname') ?? null;
  const key = parts.get('accountkey') ?? null;
  const sas = parts.get('sharedaccesssignature') ?? null;
  const endpoint = parts.get('blobendpoint') ?? endpointIn(parts, account);
  if (!key && !sas) throw new DestinationConfigError(MALFORMED, 'connection_string');
  return {
    ...rest,
    account_name: account,
    account_key: sas ? null : key,
    sas_token: sas,
    endpoint_url: endpoint,
  };
}

/** The endpoint that a connection string names by its parts. Null if it is the usual one. */
function endpointIn(parts: ReadonlyMap<string, string>, account: string | null): string | null {
  const protocol = parts.get('defaultendpointsprotocol') ?? 'https';
  const suffix = parts.get('endpointsuffix') ?? PUBLIC_CLOUD;
  if (account === null || (protocol === 'https' && suffix === PUBLIC_CLOUD)) return null;
  return `${protocol}://${account}.blob.${suffix}`;
}

const PUBLIC_CLOUD = 'core.windows.net';

type Endpoint = { account_name?: unknown; endpoint_url?: unknown };

/** The URL of the blob service, without a slash at its end. */
export function endpointOf({ account_name: account, endpoint_url: endpoint }: Endpoint): string {
  const url = endpoint ? String(endpoint) : `https://${account}.blob.${PUBLIC_CLOUD}`;
  return String(urlAddress(url)).replace(/\/+$/, '');
}

/** Where the key or the signature goes. The account is a part of the host name, or of the path of an emulator. */
export const azureAddress = (config: RawConfig): RawConfig => ({
  account_name: config.account_name ?? null,
  endpoint_url: config.endpoint_url ? urlAddress(config.endpoint_url) : null,
});

/** The container and the prefix. */
export const azurePlace = (config: RawConfig) => ({
  store: `azure ${endpointOf(config)} ${config.container_name}`,
  prefix: String(config.prefix ?? ''),
});
