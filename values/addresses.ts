import { BlockList, isIP } from 'node:net';

type Networks = readonly (readonly [name: string, ...networks: string[]])[];

/**
 * Services that hand out the credentials of the machine. Other networks contain these addresses, so they are tested
 * first.
 */
const CLOUD_METADATA: Networks = [
  ['cloud metadata', '169.254.169.254/32', '100.100.100.200/32', '192.0.0.192/32', '168.63.129.16/32'],
  ['cloud metadata', 'fd00:ec2::254/128', 'fd20:ce::254/128'],
];

/** Addresses that every machine, link or network reuses. They have no fixed location. */
const LOCAL: Networks = [
  ['unspecified', '0.0.0.0/8', '::/128'],
  ['loopback', '127.0.0.0/8', '::1/128'],
  ['private', '10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16', 'fc00::/7', 'fec0::/10'],
  ['shared by a carrier (CGNAT)', '100.64.0.0/10'],
  ['link-local', '169.254.0.0/16', 'fe80::/10'],
  ['multicast', '224.0.0.0/4', 'ff00::/8'],
  ['reserved', '240.0.0.0/4'],
];

/** The other special-purpose addresses (RFC 6890 and its successors). */
const SPECIAL: Networks = [
  ['6to4', '192.88.99.0/24', '2002::/16'],
  ['NAT64', '64:ff9b::/96', '64:ff9b:1::/48'],
  ['documentation', '192.0.2.0/24', '198.51.100.0/24', '203.0.113.0/24', '2001:db8::/32', '3fff::/20'],
  ['reserved', '192.0.0.0/24', '198.18.0.0/15', '2001::/23'],
];

/** The only part of IPv6 that is assigned to hosts on the internet. */
const GLOBAL_UNICAST = '2000::/3';

export interface Network {
  address: string;
  prefix: number;
  family: 'ipv4' | 'ipv6';
}

/** Parses `address/prefix` or a single address. Returns undefined for anything else. */
export function parseNetwork(text: string): Network | undefined {
  const [address = '', prefix, ...rest] = text.split('/');
  const version = isIP(address);
  if (version === 0 || address.includes('%') || rest.length > 0) return undefined;
  const longest = version === 4 ? 32 : 128;
  if (prefix !== undefined && (!/^\d{1,3}$/.test(prefix) || Number(prefix) > longest)) return undefined;
  return {
    address,
    prefix: prefix === undefined ? longest : Number(prefix),
    family: version === 4 ? 'ipv4' : 'ipv6',
  };
}

export function networkList(networks: readonly Network[]): BlockList {
  const list = new BlockList();
  for (const { address, prefix, family } of networks) list.addSubnet(address, prefix, family);
  return list;
}

/** Returns whether the list contains an address. The address must be in the form that `plainAddress` returns. */
export function isListed(list: BlockList, address: string): boolean {
  return list.check(address, address.includes(':') ? 'ipv6' : 'ipv4');
}

const listOf = (texts: readonly string[]) => networkList(texts.map((text) => parseNetwork(text) as Network));
const special = [...CLOUD_METADATA, ...LOCAL, ...SPECIAL].map(([name, ...networks]) => ({
  name,
  list: listOf(networks),
}));
const local = listOf(LOCAL.flatMap(([, ...networks]) => networks));
const globalUnicast = listOf([GLOBAL_UNICAST]);

/**
 * Returns the standard form of an address, without zone and brackets. An IPv4 address in IPv6 notation
 * (`::ffff:127.0.0.1`, `::ffff:7f00:1`) becomes the IPv4 address. Returns undefined for a text that is not an address.
 */
export function plainAddress(text: string): string | undefined {
  const bare = text.replace(/^\[(.*)\]$/, '$1').replace(/%.*$/, '');
  const version = isIP(bare);
  if (version === 0) return undefined;
  if (version === 4) return bare;
  // The URL parser accepts every notation of an address and returns the standard one.
  const canonical = new URL(`http://[${bare}]`).hostname.slice(1, -1);
  const mapped = /^::ffff:([0-9a-f]{1,4}):([0-9a-f]{1,4})$/.exec(canonical);
  if (!mapped) return canonical;
  const high = Number.parseInt(mapped[1] as string, 16);
  const low = Number.parseInt(mapped[2] as string, 16);
  return [high >> 8, high & 255, low >> 8, low & 255].join('.');
}

/** Returns the special purpose of an address, or undefined for an ordinary host on the internet. */
export function specialUse(address: string): string | undefined {
  const plain = plainAddress(address);
  if (plain === undefined) return 'not an IP address';
  const found = special.find(({ list }) => isListed(list, plain));
  if (found) return found.name;
  return plain.includes(':') && !isListed(globalUnicast, plain) ? 'reserved' : undefined;
}

/**
 * Returns whether an address means a different host in every network. The address must be in the form that
 * `plainAddress` returns.
 */
export const isLocal = (address: string): boolean => isListed(local, address);
