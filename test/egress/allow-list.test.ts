import { describe, expect, test } from '@jest/globals';
import { AllowListError, isAllowed, parseAllowList } from '../../egress/allow-list.ts';

describe('the allow list', () => {
  const list = parseAllowList(' MinIO.internal. , 10.1.0.0/16,127.0.0.1, fd12::/16 ,[::1],db_1');

  test.each([
    ['minio.internal', '10.9.9.9', true],
    ['MINIO.INTERNAL.', '192.168.0.1', true],
    ['sub.minio.internal', '10.9.9.9', false],
    ['db_1', '172.17.0.2', true],
    ['any', '10.1.255.255', true],
    ['any', '::ffff:10.1.2.3', true],
    ['any', '10.2.0.0', false],
    ['any', '127.0.0.1', true],
    ['any', '127.0.0.2', false],
    ['any', '::1', true],
    ['any', 'fd12:3::4', true],
    ['any', 'fd13::1', false],
  ])('%s at %s: %s', (host, address, expected) => {
    expect(isAllowed(list, host, address)).toBe(expected);
  });

  test('an empty one allows nothing', () => {
    expect(isAllowed(parseAllowList(''), '', '127.0.0.1')).toBe(false);
  });

  test.each([
    '10.0.0.0/33',
    '10.0.0/8',
    '300.1.1.1',
    'http://host',
    'a b',
    '-x',
    '::1/129',
    '10.0.0.0/8/8',
    'h:80',
  ])('%j is refused by name', (entry) => {
    expect(() => parseAllowList(`localhost,${entry}`)).toThrow(AllowListError);
    expect(() => parseAllowList(`localhost,${entry}`)).toThrow(JSON.stringify(entry));
  });
});
