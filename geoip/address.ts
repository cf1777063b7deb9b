import { BlockList, isIP, SocketAddress } from 'node:net';

/** Addresses that are nowhere: of this machine, of private networks, of links and groups. */
const NOWHERE = new BlockList();
for (const [network, bits] of [
  ['0.0.0.0', 8],
  ['10.0.0.0', 8],
  ['100.64.0.0', 10],
  ['127.0.0.0', 8],
  ['169.254.0.0', 16],
  ['172.16.0.0', 12],
  ['192.168.0.0', 16],
  ['224.0.0.0', 3],
] as const) {
  NOWHERE.addSubnet(network, bits, 'ipv4');
}
for (const [network, bits] of [
  ['::', 127],
  ['fc00::', 7],
  ['fe80::', 10],
  ['ff00::', 8],
] as const) {
  NOWHERE.addSubnet(network, bits, 'ipv6');
}

/** No spelling of an address is longer. */
const LONGEST = 64;
const MAPPED = '::ffff:';

/** An address of the public internet in its one spelling, IPv4 where it is mapped; undefined for anything else. */
export function publicAddress(value: unknown): string | undefined {
  if (typeof value !== 'string' || value.length > LONGEST) return undefined;
  const text = value.trim();
  const family = isIP(text);
  if (family === 0) return undefined;
  if (family === 4) return NOWHERE.check(text, 'ipv4') ? undefined : text;
  // A zone belongs to an address of a link.
  if (text.includes('%')) return undefined;
  const { address } = new SocketAddress({ address: text, family: 'ipv6' });
  if (address.startsWith(MAPPED) && isIP(address.slice(MAPPED.length)) === 4) {
    return publicAddress(address.slice(MAPPED.length));
  }
  return NOWHERE.check(address, 'ipv6') ? undefined : address;
}
