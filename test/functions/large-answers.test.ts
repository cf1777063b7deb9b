import { describe, expect, test } from '@jest/globals';
import { LargeAnswers, type Place } from '../../functions/delivery/large-answers.ts';

const [ANNA, BOB] = [1, 2];

/** Enters, and notes who may read. */
function entering(answers: LargeAnswers) {
  const granted: string[] = [];
  const enter = (projectId: number, name: string): Place => {
    const place = answers.enter(projectId);
    void place.granted.then(() => granted.push(name));
    return place;
  };
  const now = async () => {
    await new Promise(setImmediate);
    return granted.splice(0);
  };
  return { enter, now };
}

describe('large answers', () => {
  test('of a project wait for each other, and not those of another one', async () => {
    const { enter, now } = entering(new LargeAnswers({ ofProject: 2, ofAll: 3 }));
    const first = enter(ANNA, 'a1');
    for (const name of ['a2', 'a3', 'a4']) enter(ANNA, name);
    expect(await now()).toEqual(['a1', 'a2']);
    enter(BOB, 'b1');
    expect(await now()).toEqual(['b1']);
    first.leave();
    expect(await now()).toEqual(['a3']);
  });

  test('go first to the project with the fewest', async () => {
    const { enter, now } = entering(new LargeAnswers({ ofProject: 2, ofAll: 2 }));
    const places = [enter(ANNA, 'a1'), enter(ANNA, 'a2')];
    enter(ANNA, 'a3');
    enter(BOB, 'b1');
    expect(await now()).toEqual(['a1', 'a2']);
    places[0]?.leave();
    expect(await now()).toEqual(['b1']);
  });

  test('that nobody waits for any more take no place, and a place is given back once', async () => {
    const { enter, now } = entering(new LargeAnswers({ ofProject: 1, ofAll: 1 }));
    const first = enter(ANNA, 'a1');
    const second = enter(ANNA, 'a2');
    enter(ANNA, 'a3');
    enter(ANNA, 'a4');
    second.leave();
    first.leave();
    first.leave();
    expect(await now()).toEqual(['a1', 'a3']);
  });
});
