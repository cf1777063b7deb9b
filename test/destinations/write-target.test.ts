import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { targetsCollide, type WriteTarget } from '../../destinations/write-target.ts';

const objects = (prefix: string, given: Partial<WriteTarget> = {}): WriteTarget => ({
  store: 's3:https://s3.example.com/lake',
  prefix,
  model: 'events',
  interval: 'hour',
  ...given,
});

describe('files', () => {
  test.each<[string, string, boolean]>([
    ['a', 'a', true],
    ['a', 'b', false],
    ['', '', true],
    ['', '/', true],
    ['/a/', 'a', true],
    ['a//b', 'a/b', true],
    ['a', 'a/b', false],
    ['{year}/x', '{year}/x', true],
    ['{year}', '2026', true],
    ['{year}', '20x6', false],
    ['{year}', '{month}{day}', true],
    ['{year}-{month}', '{year}{month}-', false],
    ['{table}/a', 'events/a', true],
    ['{table}/a', 'persons/a', false],
    ['{data_interval_end}', '{data_interval_start}', true],
    ['{data_interval_end}', '2026-01-31T12:00:00+00:00', true],
    ['{unknown}', '{unknown}', true],
    ['{unknown}', '{other}', false],
    ['{{year}}', '{year}', false],
    ['{{a}}', '{a}', true],
    ['😀{hour}', '😀23', true],
  ])('%s and %s: %s', (one, other, collide) => {
    expect(targetsCollide(objects(one), objects(other))).toBe(collide);
    expect(targetsCollide(objects(other), objects(one))).toBe(collide);
  });

  test('elsewhere, of other lengths, of other models', () => {
    expect(targetsCollide(objects('a'), objects('a', { store: 's3:https://s3.example.com/other' }))).toBe(
      false,
    );
    expect(targetsCollide(objects('a'), objects('a', { interval: 'day' }))).toBe(false);
    expect(targetsCollide(objects('a'), objects('a', { model: 'persons' }))).toBe(true);
    expect(targetsCollide(objects('{table}'), objects('{table}', { model: 'persons' }))).toBe(false);
  });

  test('whatever both templates can give, they collide', () => {
    const pieces = fc.array(
      fc.constantFrom(
        '{year}',
        '{month}',
        '{day}',
        '{hour}',
        '{table}',
        '2026',
        '01',
        '/',
        'a',
        '-',
        'events',
      ),
      { maxLength: 5 },
    );
    const rendered = (parts: string[]) =>
      parts
        .join('')
        .replaceAll('{year}', '2026')
        .replaceAll('{table}', 'events')
        .replace(/\{\w+\}/g, '01')
        .split('/')
        .filter((part) => part !== '')
        .join('/');
    fc.assert(
      fc.property(pieces, pieces, (one, other) => {
        fc.pre(rendered(one) === rendered(other));
        expect(targetsCollide(objects(one.join('')), objects(other.join('')))).toBe(true);
      }),
    );
  });
});
