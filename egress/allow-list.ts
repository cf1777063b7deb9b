import type { BlockList } from 'node:net';
import { isListed, type Network, networkList, parseNetwork, plainAddress } from '../values/addresses.ts';

/** The private hosts and networks that the operator allows: `SLUICE_EGRESS_ALLOW`, parsed. */
export interface AllowList {
  hosts: ReadonlySet<string>;
  networks: BlockList;
}

export class AllowListError extends Error {
  override name = 'AllowListError';
}

const HOST = /^(?=.{1,253}$)[a-z0-9_]([a-z0-9_-]{0,62}[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]{0,62}[a-z0-9_])?)*$/;

/** Returns the standard form of a host: lower case, without a trailing dot and brackets. */
export function plainHost(host: string): string {
  const bare = host.replace(/^\[(.*)\]$/, '$1');
  return (plainAddress(bare) ?? bare).toLowerCase().replace(/\.$/, '');
}

/** Parses a comma-separated list of host names, addresses and CIDRs. */
export function parseAllowList(text: string): AllowList {
  const hosts = new Set<string>();
  const networks: Network[] = [];
  for (const entry of text.split(',').map((one) => one.trim())) {
    if (entry === '') continue;
    const network = parseNetwork(entry.replace(/^\[(.*)\]$/, '$1'));
    if (network) networks.push(network);
    else if (HOST.test(plainHost(entry)) && !/^[\d.]+$/.test(entry)) hosts.add(plainHost(entry));
    else {
      throw new AllowListError(
        `SLUICE_EGRESS_ALLOW: ${JSON.stringify(entry)} is not a host name, an address or a CIDR (such as 10.0.0.0/8)`,
      );
    }
  }
  return { hosts, networks: networkList(networks) };
}

/** Returns whether the list contains the host, or a network that contains the address. */
export function isAllowed(list: AllowList, host: string, address: string): boolean {
  const plain = plainAddress(address);
  return list.hosts.has(plainHost(host)) || (plain !== undefined && isListed(list.networks, plain));
}
