import { describe, expect, test } from '@jest/globals';
import { hostAllowed, readHost, sameHosts } from '../../integrations/rules/hosts.ts';

describe('an entry of a list of hosts', () => {
  test.each([
    ['api.example.com', 'api.example.com'],
    [' API.Example.com. ', 'api.example.com'],
    ['*.example.com', '*.example.com'],
    ['localhost', 'localhost'],
    ['bücher.example', 'xn--bcher-kva.example'],
    ['10.0.0.5', '10.0.0.5'],
    ['::1', '::1'],
    ['[::1]', '::1'],
    ['::ffff:127.0.0.1', '127.0.0.1'],
  ])('is %s', (entry, read) => {
    expect(readHost(entry)).toBe(read);
  });

  test.each([
    ...['', '*', '*.', '*.com', '*.*.com', 'a.*.com', '*example.com', '*.10.0.0.1', '*.localhost'],
    ...[
      'https://example.com',
      'example.com/',
      'example.com:443',
      'user@example.com',
      'a b',
      'a..b',
      '-',
      'a_b/',
    ],
    ...['127.1', '2130706433', '0x7f000001', '0177.0.0.1', '10.0.0.0/8', '[::1', 'a,b', 'é'.repeat(200)],
    ...['%65xample.com', 'example.com?x', 'example.com#x', 'example.com\\x', `${'a'.repeat(64)}.com`],
  ])('is not %j', (entry) => {
    expect(readHost(entry)).toBeUndefined();
  });
});

describe('a secret', () => {
  const hosts = ['api.example.com', '*.wide.example', '10.0.0.5', 'localhost', '::1', '8.8.8.8', 'intranet'];

  test.each([
    'https://api.example.com/x?y#z',
    'https://API.EXAMPLE.COM./',
    'https://api.example.com:8443/',
    'https://a.wide.example/',
    'https://a.b.wide.example/',
    'http://10.0.0.5:8080/',
    'https://10.0.0.5/',
    'http://localhost:3000/',
    'http://[::1]/',
    'http://intranet/',
    'https://8.8.8.8/',
    // The URL parser knows these for addresses.
    'http://0x0a000005/',
    'http://167772165/',
  ])('may go to %s', (url) => {
    expect(hostAllowed({ hosts }, url)).toBe(true);
  });

  test.each([
    'http://api.example.com/',
    'http://a.wide.example/',
    'http://8.8.8.8/',
    'https://wide.example/',
    'https://evilwide.example/',
    'https://example.com/',
    'https://x.api.example.com/',
    'https://api.example.com.evil.com/',
    'https://api.example.com@evil.com/',
    'https://evil.com/api.example.com',
    'https://evil.com?api.example.com',
    'https://evil.com\\@api.example.com/',
    'https://10.0.0.6/',
    'ftp://api.example.com/',
    'wss://api.example.com/',
    'file:///etc/passwd',
    'api.example.com',
    '',
  ])('may not go to %s', (url) => {
    expect(hostAllowed({ hosts }, url)).toBe(false);
  });

  test('stays with its hosts: their order and number of times make no difference', () => {
    expect(sameHosts(['a', 'b', 'a'], ['b', 'a'])).toBe(true);
    expect(sameHosts(['a', 'b'], ['a'])).toBe(false);
    expect(sameHosts(['a'], ['b'])).toBe(false);
  });
});
