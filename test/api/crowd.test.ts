import { expect, test } from '@jest/globals';
import { Crowd } from '../../api/public/crowd.ts';

test('members come and go in any order', () => {
  const crowd = new Crowd<{ place: number; name: number }>();
  const members = Array.from({ length: 50 }, (_, name) => ({ place: 0, name }));
  for (const one of members) crowd.add(one);
  const left = new Set(members);
  // 7 and 50 have no common divisor, so each is met once.
  for (let step = 0; step < 49; step += 1) {
    const one = members[(step * 7) % 50] as (typeof members)[0];
    crowd.remove(one);
    crowd.remove(one);
    left.delete(one);
    expect(new Set(crowd.all())).toEqual(left);
  }
  const [last] = left;
  crowd.add(members[0] as (typeof members)[0]);
  expect(crowd.all().map((one) => one.name)).toEqual([last?.name, 0]);
});
