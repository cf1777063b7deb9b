import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { isLocal, plainAddress, specialUse } from '../../values/addresses.ts';

// First and last address of each network, and its neighbours outside.
const GOLDEN: [address: string, use: string | undefined][] = [
  ['0.0.0.0', 'unspecified'],
  ['0.255.255.255', 'unspecified'],
  ['1.0.0.0', undefined],
  ['9.255.255.255', undefined],
  ['10.0.0.0', 'private'],
  ['10.255.255.255', 'private'],
  ['11.0.0.0', undefined],
  ['100.63.255.255', undefined],
  ['100.64.0.0', 'shared by a carrier (CGNAT)'],
  ['100.100.100.200', 'cloud metadata'],
  ['100.127.255.255', 'shared by a carrier (CGNAT)'],
  ['100.128.0.0', undefined],
  ['126.255.255.255', undefined],
  ['127.0.0.1', 'loopback'],
  ['127.255.255.255', 'loopback'],
  ['128.0.0.0', undefined],
  ['168.63.129.16', 'cloud metadata'],
  ['169.253.255.255', undefined],
  ['169.254.0.0', 'link-local'],
  ['169.254.169.254', 'cloud metadata'],
  ['169.254.255.255', 'link-local'],
  ['169.255.0.0', undefined],
  ['172.15.255.255', undefined],
  ['172.16.0.0', 'private'],
  ['172.31.255.255', 'private'],
  ['172.32.0.0', undefined],
  ['192.0.0.192', 'cloud metadata'],
  ['192.0.0.8', 'reserved'],
  ['192.0.1.0', undefined],
  ['192.0.2.1', 'documentation'],
  ['192.88.99.1', '6to4'],
  ['192.167.255.255', undefined],
  ['192.168.0.0', 'private'],
  ['192.168.255.255', 'private'],
  ['192.169.0.0', undefined],
  ['198.17.255.255', undefined],
  ['198.18.0.0', 'reserved'],
  ['198.19.255.255', 'reserved'],
  ['198.20.0.0', undefined],
  ['198.51.100.7', 'documentation'],
  ['203.0.113.7', 'documentation'],
  ['223.255.255.255', undefined],
  ['224.0.0.1', 'multicast'],
  ['239.255.255.255', 'multicast'],
  ['240.0.0.0', 'reserved'],
  ['255.255.255.255', 'reserved'],
  ['8.8.8.8', undefined],
  ['::', 'unspecified'],
  ['::1', 'loopback'],
  ['0:0:0:0:0:0:0:1', 'loopback'],
  ['::2', 'reserved'],
  ['::127.0.0.1', 'reserved'],
  ['::8.8.8.8', 'reserved'],
  ['::ffff:127.0.0.1', 'loopback'],
  ['::ffff:7f00:1', 'loopback'],
  ['0:0:0:0:0:ffff:10.1.2.3', 'private'],
  ['::FFFF:169.254.169.254', 'cloud metadata'],
  ['::ffff:8.8.8.8', undefined],
  ['::ffff:0:127.0.0.1', 'reserved'],
  ['64:ff9b::127.0.0.1', 'NAT64'],
  ['64:ff9b::8.8.8.8', 'NAT64'],
  ['64:ff9b:1::1', 'NAT64'],
  ['100::1', 'reserved'],
  ['1fff:ffff::1', 'reserved'],
  ['2000::1', undefined],
  ['2001::1', 'reserved'],
  ['2001:1ff::1', 'reserved'],
  ['2001:200::1', undefined],
  ['2001:db8::1', 'documentation'],
  ['2002:7f00:1::', '6to4'],
  ['2003::1', undefined],
  ['2606:4700:4700::1111', undefined],
  ['3fff::1', 'documentation'],
  ['3fff:1000::1', undefined],
  ['4000::1', 'reserved'],
  ['fc00::1', 'private'],
  ['fd00:ec2::254', 'cloud metadata'],
  ['fdff::1', 'private'],
  ['fe80::1', 'link-local'],
  ['fe80::1%eth0', 'link-local'],
  ['febf::1', 'link-local'],
  ['fec0::1', 'private'],
  ['ff02::1', 'multicast'],
  ['[::1]', 'loopback'],
  ['localhost', 'not an IP address'],
  ['', 'not an IP address'],
  ['127.1', 'not an IP address'],
];

test.each(GOLDEN)('%s is %s', (address, use) => {
  expect(specialUse(address)).toBe(use);
});

const octets = fc.tuple(fc.nat(255), fc.nat(255), fc.nat(255), fc.nat(255));
const groups = fc.array(fc.nat(0xffff), { minLength: 8, maxLength: 8 });

test('an IPv4 address is judged the same in every way to write it', () => {
  fc.assert(
    fc.property(octets, (parts) => {
      const [a, b, c, d] = parts;
      const hex = (high: number, low: number) => ((high << 8) | low).toString(16);
      const plain = parts.join('.');
      const use = specialUse(plain);
      for (const written of [
        `::ffff:${plain}`,
        `::FFFF:${hex(a, b)}:${hex(c, d)}`,
        `0:0:0:0:0:ffff:${hex(a, b)}:${hex(c, d)}`,
        `[::ffff:${plain}]`,
      ]) {
        expect(plainAddress(written)).toBe(plain);
        expect(specialUse(written)).toBe(use);
      }
      // Forms that lead to an IPv4 address by way of somebody else are never followed.
      expect(specialUse(`64:ff9b::${plain}`)).toBe('NAT64');
      expect(specialUse(`2002:${hex(a, b)}:${hex(c, d)}::1`)).toBe('6to4');
      expect(specialUse(`::${hex(a, b)}:${hex(c, d)}`)).not.toBeUndefined();
    }),
  );
});

test('every address of a refused IPv4 network is refused, judged by arithmetic of its own', () => {
  const refused: [number, number][] = [
    [0x00000000, 8],
    [0x0a000000, 8],
    [0x64400000, 10],
    [0x7f000000, 8],
    [0xa9fe0000, 16],
    [0xac100000, 12],
    [0xc0000000, 24],
    [0xc0000200, 24],
    [0xc0586300, 24],
    [0xc0a80000, 16],
    [0xc6120000, 15],
    [0xc6336400, 24],
    [0xcb007100, 24],
    [0xe0000000, 3],
    [0xa83f8110, 32],
  ];
  const inside = (value: number) =>
    refused.some(
      ([base, prefix]) => Math.floor(value / 2 ** (32 - prefix)) === Math.floor(base / 2 ** (32 - prefix)),
    );
  const near = fc
    .tuple(fc.constantFrom(...refused), fc.integer({ min: -3, max: 3 }), fc.boolean())
    .map(
      ([[base, prefix], step, end]) => (base + (end ? 2 ** (32 - prefix) - 1 : 0) + step + 2 ** 32) % 2 ** 32,
    );
  fc.assert(
    fc.property(fc.oneof(fc.nat(0xffffffff), near), (value) => {
      const address = [24, 16, 8, 0].map((shift) => Math.floor(value / 2 ** shift) % 256).join('.');
      expect(specialUse(address) !== undefined).toBe(inside(value));
    }),
    { numRuns: 2_000 },
  );
});

test('nothing outside of 2000::/3 is the public internet', () => {
  fc.assert(
    fc.property(groups, (parts) => {
      const address = parts.map((part) => part.toString(16)).join(':');
      if ((parts[0] as number) >> 13 !== 1) expect(specialUse(address)).not.toBeUndefined();
    }),
  );
});

test('an address that every network uses for itself is local; one of another special use is not', () => {
  const local = [
    'unspecified',
    'loopback',
    'private',
    'shared by a carrier (CGNAT)',
    'link-local',
    'multicast',
  ];
  for (const [address, use] of GOLDEN) {
    const plain = plainAddress(address);
    if (plain === undefined || use === 'cloud metadata' || use === 'reserved') continue;
    expect([address, isLocal(plain)]).toEqual([address, local.includes(use as string)]);
  }
  expect(['240.0.0.0', '255.255.255.255', '169.254.169.254'].map(isLocal)).toEqual([true, true, true]);
  expect(['192.0.0.8', '198.18.0.0', '168.63.129.16', '2001::1', '4000::1'].some(isLocal)).toBe(false);
});

// Every entry of the registries of special-purpose addresses (IANA, IPv4 and IPv6), first and last address, and the
// multicast networks beside them. Those that the registries call globally reachable by themselves are ordinary.
const IANA: [network: string, first: string, last: string, use: string | undefined][] = [
  ['0.0.0.0/8', '0.0.0.0', '0.255.255.255', 'unspecified'],
  ['10.0.0.0/8', '10.0.0.0', '10.255.255.255', 'private'],
  ['100.64.0.0/10', '100.64.0.0', '100.127.255.255', 'shared by a carrier (CGNAT)'],
  ['127.0.0.0/8', '127.0.0.0', '127.255.255.255', 'loopback'],
  ['169.254.0.0/16', '169.254.0.0', '169.254.255.255', 'link-local'],
  ['172.16.0.0/12', '172.16.0.0', '172.31.255.255', 'private'],
  ['192.0.0.0/24', '192.0.0.0', '192.0.0.255', 'reserved'],
  ['192.0.0.0/29', '192.0.0.0', '192.0.0.7', 'reserved'],
  ['192.0.0.8/32', '192.0.0.8', '192.0.0.8', 'reserved'],
  ['192.0.0.9/32', '192.0.0.9', '192.0.0.9', 'reserved'],
  ['192.0.0.10/32', '192.0.0.10', '192.0.0.10', 'reserved'],
  ['192.0.0.170/31', '192.0.0.170', '192.0.0.171', 'reserved'],
  ['192.0.2.0/24', '192.0.2.0', '192.0.2.255', 'documentation'],
  ['192.31.196.0/24', '192.31.196.0', '192.31.196.255', undefined],
  ['192.52.193.0/24', '192.52.193.0', '192.52.193.255', undefined],
  ['192.88.99.0/24', '192.88.99.0', '192.88.99.255', '6to4'],
  ['192.168.0.0/16', '192.168.0.0', '192.168.255.255', 'private'],
  ['192.175.48.0/24', '192.175.48.0', '192.175.48.255', undefined],
  ['198.18.0.0/15', '198.18.0.0', '198.19.255.255', 'reserved'],
  ['198.51.100.0/24', '198.51.100.0', '198.51.100.255', 'documentation'],
  ['203.0.113.0/24', '203.0.113.0', '203.0.113.255', 'documentation'],
  ['224.0.0.0/4', '224.0.0.0', '239.255.255.255', 'multicast'],
  ['240.0.0.0/4', '240.0.0.0', '255.255.255.254', 'reserved'],
  ['255.255.255.255/32', '255.255.255.255', '255.255.255.255', 'reserved'],
  ['::1/128', '::1', '::1', 'loopback'],
  ['::/128', '::', '::', 'unspecified'],
  ['::ffff:0:0/96 of 10/8', '::ffff:10.0.0.0', '::ffff:aff:ffff', 'private'],
  ['64:ff9b::/96', '64:ff9b::', '64:ff9b::255.255.255.255', 'NAT64'],
  ['64:ff9b:1::/48', '64:ff9b:1::', '64:ff9b:1:ffff:ffff:ffff:ffff:ffff', 'NAT64'],
  ['100::/64', '100::', '100::ffff:ffff:ffff:ffff', 'reserved'],
  ['100:0:0:1::/64', '100:0:0:1::', '100::1:ffff:ffff:ffff:ffff', 'reserved'],
  ['2001::/23', '2001::', '2001:1ff:ffff:ffff:ffff:ffff:ffff:ffff', 'reserved'],
  ['2001::/32', '2001::', '2001:0:ffff:ffff:ffff:ffff:ffff:ffff', 'reserved'],
  ['2001:1::1 to 3', '2001:1::1', '2001:1::3', 'reserved'],
  ['2001:2::/48', '2001:2::', '2001:2:0:ffff:ffff:ffff:ffff:ffff', 'reserved'],
  ['2001:3::/32', '2001:3::', '2001:3:ffff:ffff:ffff:ffff:ffff:ffff', 'reserved'],
  ['2001:4:112::/48', '2001:4:112::', '2001:4:112:ffff:ffff:ffff:ffff:ffff', 'reserved'],
  ['2001:10::/28', '2001:10::', '2001:1f:ffff:ffff:ffff:ffff:ffff:ffff', 'reserved'],
  ['2001:20::/28', '2001:20::', '2001:2f:ffff:ffff:ffff:ffff:ffff:ffff', 'reserved'],
  ['2001:30::/28', '2001:30::', '2001:3f:ffff:ffff:ffff:ffff:ffff:ffff', 'reserved'],
  ['2001:db8::/32', '2001:db8::', '2001:db8:ffff:ffff:ffff:ffff:ffff:ffff', 'documentation'],
  ['2002::/16', '2002::', '2002:ffff:ffff:ffff:ffff:ffff:ffff:ffff', '6to4'],
  ['2620:4f:8000::/48', '2620:4f:8000::', '2620:4f:8000:ffff:ffff:ffff:ffff:ffff', undefined],
  ['3fff::/20', '3fff::', '3fff:fff:ffff:ffff:ffff:ffff:ffff:ffff', 'documentation'],
  ['5f00::/16', '5f00::', '5f00:ffff:ffff:ffff:ffff:ffff:ffff:ffff', 'reserved'],
  ['fc00::/7', 'fc00::', 'fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff', 'private'],
  ['fe80::/10', 'fe80::', 'febf:ffff:ffff:ffff:ffff:ffff:ffff:ffff', 'link-local'],
  ['fec0::/10', 'fec0::', 'feff:ffff:ffff:ffff:ffff:ffff:ffff:ffff', 'private'],
  ['ff00::/8', 'ff00::', 'ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff', 'multicast'],
];

test.each(IANA)('%s of the registries is judged as one', (_network, first, last, use) => {
  expect([specialUse(first), specialUse(last)]).toEqual([use, use]);
});

test('what only some programs take for an address is none', () => {
  const odd = [
    ...[
      '2130706433',
      '0x7f000001',
      '0x7f.1',
      '017700000001',
      '0177.0.0.1',
      '127.0.1',
      '127.0.0.01',
      '127.0.0.1.',
    ],
    ...['127.0.0.1 ', ' 127.0.0.1', '127.0.0.1/8', '127.0.0.1:80', '127.0.0.256', '١٢٧.0.0.1', '１27.0.0.1'],
    ...[
      '::1/128',
      ':::1',
      '1::2::3',
      '::ffff:127.1',
      '::ffff:0x7f.0.0.1',
      '::ffff:127.0.0.1.',
      '[127.0.0.1',
      '::1]',
    ],
    ...[
      '12345::',
      '::g',
      '1:2:3:4:5:6:7:8:9',
      '1:2:3:4:5:6:7',
      '::ffff:127.0.0.01',
      '0:0:0:0:0:0:0:0:1',
      '[[::1]]',
    ],
  ];
  for (const text of odd) {
    expect([text, plainAddress(text), specialUse(text)]).toEqual([text, undefined, 'not an IP address']);
  }
  // A zone, whatever it says, changes nothing.
  for (const zone of ['eth0', '1', 'lo', '%', '']) {
    expect(plainAddress(`fe80::1%${zone}`)).toBe('fe80::1');
    expect(specialUse(`::1%${zone}`)).toBe('loopback');
    expect(specialUse(`::ffff:127.0.0.1%${zone}`)).toBe('loopback');
  }
});

test('an address has one form', () => {
  fc.assert(
    fc.property(
      fc.oneof(groups, fc.array(fc.constantFrom(0, 0, 1, 0xffff), { minLength: 8, maxLength: 8 })),
      (parts) => {
        const written = parts.map((part) => part.toString(16).padStart(4, '0').toUpperCase()).join(':');
        const plain = plainAddress(written) as string;
        expect(plainAddress(parts.map((part) => part.toString(16)).join(':'))).toBe(plain);
        // The platform agrees which form that is.
        if (plain.includes(':')) expect(plain).toBe(new URL(`http://[${written}]`).hostname.slice(1, -1));
        expect(plainAddress(plain)).toBe(plain);
      },
    ),
  );
});
