/** Some proxies put the port behind the address. An IPv6 address has one only when it is in brackets. */
const WITH_PORT = /^(?:(\d{1,3}(?:\.\d{1,3}){3}):\d{1,5}|\[([\da-f:.]+)\](?::\d{1,5})?)$/i;
const MAPPED = '::ffff:';
/** The groups of an IPv6 address that name a network. Its owner chooses the rest freely. */
const NETWORK_GROUPS = 4;
const GROUPS = 8;

/** A client's address in its usual spelling. A socket for both families shows an IPv4 address as IPv6. */
export function clientAddress(ip: string | undefined): string | undefined {
  if (ip === undefined) return ip;
  const address = ip.startsWith(MAPPED) && ip.includes('.') ? ip.slice(MAPPED.length) : ip;
  if (!address.includes(':')) return address;
  const match = WITH_PORT.exec(address);
  return match ? (match[1] ?? clientAddress(match[2])) : address;
}

/** Names whom an address belongs to, as far as one can tell: an IPv4 address, or the /64 network of an IPv6 one. */
export function clientNetwork(ip: string | undefined): string {
  const address = clientAddress(ip) ?? '';
  if (!address.includes(':')) return address;
  const [head = '', tail] = address.toLowerCase().split('::', 2);
  const groups = head === '' ? [] : head.split(':');
  const behind = tail ? tail.split(':').length : 0;
  if (tail !== undefined) while (groups.length + behind < GROUPS) groups.push('0');
  const named = tail ? [...groups, ...tail.split(':')] : groups;
  return `${named
    .slice(0, NETWORK_GROUPS)
    .map((one) => one.replace(/^0+(?=.)/, ''))
    .join(':')}::/64`;
}
