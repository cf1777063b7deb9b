import { isListed, type Network, networkList, parseNetwork, plainAddress } from '../../values/addresses.ts';

/** Networks from which the operators of crawlers say that they crawl. */
const KNOWN: Record<string, string> = {
  Google: '66.249.64.0/19 2001:4860:4801::/48',
  Bing: `13.66.139.0/24 13.66.144.0/24 40.77.139.0/25 40.77.167.0/24 40.77.177.0/24 40.77.178.0/23 40.77.188.0/22
    40.77.202.0/24 52.167.144.0/24 65.55.210.0/24 157.55.39.0/24 199.30.24.0/23 207.46.13.0/24`,
  Apple: `17.22.237.0/24 17.22.245.0/24 17.22.253.0/24 17.241.75.0/24 17.241.193.160/27 17.241.200.160/27
    17.241.208.160/27 17.241.219.0/24 17.241.227.0/24 17.246.15.0/24 17.246.19.0/24 17.246.23.0/24`,
  Facebook: '66.220.144.0/20 69.171.224.0/19 173.252.64.0/18',
  Ahrefs: '54.36.148.0/23',
  Semrush: '85.208.96.0/24 185.191.171.0/24',
};

const list = networkList(
  Object.values(KNOWN)
    .flatMap((networks) => networks.split(/\s+/))
    .map((text) => parseNetwork(text) as Network),
);

/** Returns whether an address belongs to a known crawler. Anything but an address does not. */
export function isKnownBotIp(text: unknown): boolean {
  const address = typeof text === 'string' ? plainAddress(text.trim()) : undefined;
  return address !== undefined && isListed(list, address);
}
