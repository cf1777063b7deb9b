import { describe, expect, test } from '@jest/globals';
import { storedName } from '../../capture/definitions/names.ts';
import { propertyTypeOf } from '../../capture/definitions/property-type.ts';
import { LookRhythm } from '../../capture/definitions/rhythm.ts';

const NOW = Date.UTC(2026, 5, 1);
const RECENT = NOW / 1000 - 86_400;
const LONG_AGO = NOW / 1000 - 400 * 86_400;

describe('the type of a property', () => {
  test.each([
    ['plan', 'paid', 'String'],
    ['plan', '', 'String'],
    ['plan', '12', 'String'],
    ['plan', ' true ', 'Boolean'],
    ['plan', 'FALSE', 'Boolean'],
    ['plan', 'True', 'String'],
    ['plan', false, 'Boolean'],
    ['plan', 12, 'Numeric'],
    ['plan', 1.5, 'Numeric'],
    ['plan', RECENT, 'Numeric'],
    ['created_at', RECENT, 'DateTime'],
    ['created_at', RECENT * 1000, 'DateTime'],
    ['Timestamp', RECENT, 'DateTime'],
    ['created_at', LONG_AGO, 'Numeric'],
    ['created_at', RECENT + 0.5, 'Numeric'],
    ['plan', '2026-01-31', 'DateTime'],
    ['plan', '2026/01/31', 'DateTime'],
    ['plan', '01/31/2026', 'DateTime'],
    ['plan', '2026-01-31 10:11:12', 'DateTime'],
    ['plan', '2026-01-31T10:11:12.123456789Z', 'DateTime'],
    ['plan', '2026-01-31t10:11:12+02:00', 'DateTime'],
    ['plan', 'Sat, 31 Jan 2026 10:11:12 +0000', 'DateTime'],
    ['plan', '31 Jan 2026 10:11:12 GMT', 'DateTime'],
    ['plan', '2026-01-31x', 'String'],
    ['plan', `2026-01-31 10:11:12 ${'x'.repeat(2_000)}`, 'String'],
    ['plan', null, null],
    ['plan', {}, null],
    ['plan', [1], null],
    ['utm_source', 1, 'String'],
    ['$initial_utm_source', 1, 'String'],
    ['UTM_SOURCE', 1, 'String'],
    ['$feature/beta', true, 'String'],
    ['$feature_flag_response', true, 'String'],
    ['$feature_flag_response_2', true, 'Boolean'],
    ['$survey_response_2', 3, 'String'],
  ])('%s: %p is %s', (name, value, type) => {
    expect(propertyTypeOf(name, value, NOW)).toBe(type);
  });
});

test('a name takes 200 bytes at most', () => {
  expect(storedName('x'.repeat(200))).toBe('x'.repeat(200));
  expect(storedName('x'.repeat(201))).toBeUndefined();
  expect(storedName('ü'.repeat(100))).toBe('ü'.repeat(100));
  expect(storedName('ü'.repeat(101))).toBeUndefined();
  expect(storedName('a\u0000b\ud800')).toBe('a\ufffdb\ufffd');
});

describe('the rhythm of looks', () => {
  /** How many of the events of one moment are looked at. */
  function looks(rhythm: LookRhythm, events: number, news: number, now = NOW): number {
    let count = 0;
    for (let event = 0; event < events; event += 1) {
      if (!rhythm.isDue(now)) continue;
      count += 1;
      rhythm.found(news, now);
    }
    return count;
  }

  test('looks at every event that shows something new', () => {
    expect(looks(new LookRhythm(), 100, 1)).toBe(100);
  });
  test('looks at one of sixteen when nothing is new, and at one a second at least', () => {
    const rhythm = new LookRhythm();
    expect(looks(rhythm, 1_600, 0)).toBeLessThanOrEqual(105);
    expect(looks(rhythm, 1, 0, NOW + 1_000)).toBe(1);
    expect(looks(rhythm, 1, 0, NOW + 1_001)).toBe(0);
  });
});
