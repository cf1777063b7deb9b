/** Some proxies put the port behind the address; only an address of version 6 in brackets can have one. */
const WITH_PORT = /^(?:(\d{1,3}(?:\.\d{1,3}){3}):\d{1,5}|\[([\da-f:.]+)\](?::\d{1,5})?)$/i;
const MAPPED = '::ffff:';

/** Where a request came from, in its usual spelling: IPv4 where a socket for both families shows it as IPv6. */
export function clientAddress(ip: string | undefined): string | undefined {
  if (ip === undefined) return ip;
  const address = ip.startsWith(MAPPED) && ip.includes('.') ? ip.slice(MAPPED.length) : ip;
  if (!address.includes(':')) return address;
  const match = WITH_PORT.exec(address);
  return match ? (match[1] ?? clientAddress(match[2])) : address;
}
