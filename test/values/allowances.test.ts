import { describe, expect, test } from '@jest/globals';
import { Allowances } from '../../values/allowances.ts';
import { clientNetwork } from '../../values/clients.ts';

describe('an allowance', () => {
  test('is used up, says when there is more, and comes back with time', () => {
    const allowances = new Allowances(6);
    for (let n = 0; n < 6; n += 1) {
      expect(allowances.wait('a', 0)).toBe(0);
      allowances.count('a', 0);
    }
    expect([allowances.wait('a', 0), allowances.wait('b', 0)]).toEqual([10, 0]);
    expect([allowances.wait('a', 4_000), allowances.wait('a', 10_000)]).toEqual([6, 0]);
    allowances.count('a', 10_000);
    expect(allowances.wait('a', 10_000)).toBe(10);
    expect(allowances.wait('a', 70_000)).toBe(0);
  });

  test('of nobody is remembered for ever, and none at all without a bound', () => {
    const allowances = new Allowances(1, 3);
    for (let n = 0; n < 100; n += 1) allowances.count(`a${n}`, 0);
    expect(allowances.size).toBe(3);
    expect([allowances.wait('a0', 0), allowances.wait('a99', 0)]).toEqual([0, 60]);
    const free = new Allowances(0);
    for (let n = 0; n < 100; n += 1) free.count('a', 0);
    expect([free.wait('a', 0), free.size]).toEqual([0, 0]);
  });
});

test.each([
  ['203.0.113.7', '203.0.113.7'],
  ['203.0.113.7:4711', '203.0.113.7'],
  ['::ffff:203.0.113.7', '203.0.113.7'],
  ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
  ['2001:0DB8:0001:0002::6', '2001:db8:1:2::/64'],
  ['[2001:db8:1:2::6]:443', '2001:db8:1:2::/64'],
  ['2001:db8::6', '2001:db8:0:0::/64'],
  ['::1', '0:0:0:0::/64'],
  ['2001:db8:1::', '2001:db8:1:0::/64'],
  [undefined, ''],
])('%s belongs to %s', (address, network) => {
  expect(clientNetwork(address)).toBe(network);
});
