import { expect, test } from '@jest/globals';
import { personName } from '../../properties/person-name.ts';

/** As libraries of old browsers made them; a screen and a chance may be short. */
const OLD = '17787c3099427b-0e8f6c86323ea9-33647309-1aeaa0-17787c30995b7c';
const SHORT = '1783b6ab5f4-00e2a1b4c9-0-4b000-1783b6ab5f51';
/** One whose first part has lost digits. */
const SHORTER = '17787c327b-0e8f623ea9-336473-1aeaa0-17787c30995b7c';
const MADE_UP = '0190aaaa-1111-7222-8333-444444444444';

test.each<[object, string[], string]>([
  [{ email: 'a@x.io', name: 'A', username: 'u' }, ['id'], 'a@x.io'],
  [{ email: '', name: 'A' }, ['id'], 'A'],
  [{ email: ' ', name: null, username: 'u' }, ['id'], 'u'],
  [{ email: { a: 1 }, name: 42 }, ['id'], '42'],
  [{ other: 'x' }, [MADE_UP, 'id'], 'id'],
  [{}, [MADE_UP], MADE_UP],
  [{}, [OLD, MADE_UP, 'id'], 'id'],
  [{}, [OLD], OLD],
  [{}, [SHORT, 'ada'], 'ada'],
  [{}, [SHORTER, 'distinct_id2'], 'distinct_id2'],
  // Somebody has chosen these.
  [{}, [OLD, 'team-a-b-c-d'], 'team-a-b-c-d'],
  [{}, [OLD.replace('-33647309', ''), 'id'], OLD.replace('-33647309', '')],
  [{}, [], ''],
  [Object.create({ email: 'inherited' }), ['id'], 'id'],
])('%j with %j is called %s', (properties, distinctIds, expected) => {
  expect(personName(properties as Record<string, unknown>, distinctIds)).toBe(expected);
});
