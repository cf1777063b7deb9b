import { beforeEach, describe, expect, test } from '@jest/globals';
import type { Pool } from '../../db/pool.ts';
import { Lines } from '../../functions/delivery/lines.ts';
import { hasRoomFor, Load, sharesOf } from '../../functions/delivery/shares.ts';

// Who gets the free places of a worker, by what each project has at work.
const PLACES = 100;
const [ANNA, BOB] = [1, 2];
let lines: Lines;
let load: Load;
beforeEach(() => {
  // Nothing is looked up.
  lines = new Lines(undefined as unknown as Pool, { lookEvery: 1_000, mostFound: 10 });
  for (const projectId of [ANNA, BOB]) lines.expect({ projectId, functionId: `f${projectId}` }, 0);
  load = new Load();
});

/** The places of each project. */
function placesOf(): Record<number, number> {
  const shares = sharesOf(lines, load, { places: PLACES, mayBeClaimed: () => true });
  return Object.fromEntries(shares.map(({ line, count }) => [line.projectId, count]));
}
const projects = () => Object.keys(placesOf()).map(Number).sort();

test('each project gets a part of what is free', () => {
  expect(placesOf()).toEqual({ [ANNA]: 50, [BOB]: 25 });
});

test('a function fills no more than its part bit by bit, and another one of its project has places', () => {
  load.inProgress.add(ANNA, 50);
  lines.expect({ projectId: ANNA, functionId: `f${ANNA}` }, 0).inFlight = 50;
  lines.expect({ projectId: ANNA, functionId: 'another' }, 0);
  const shares = sharesOf(lines, load, { places: PLACES, mayBeClaimed: () => true });
  expect(shares.map(({ line, count }) => [line.functionId, count])).toEqual([
    [`f${BOB}`, 25],
    ['another', 5],
  ]);
});

test('what a claim under way may fill is held by its project', () => {
  load.reserved.add(ANNA, 60);
  // Of the 80 places that Bob leaves to Anna, she may have 60.
  expect(placesOf()).toEqual({ [BOB]: 20 });
});

describe('nothing begins for a project, and for others it does,', () => {
  test('while its events are being read three times at once', () => {
    load.reading.add(ANNA, 2);
    expect(projects()).toEqual([ANNA, BOB]);
    load.reading.add(ANNA, 1);
    expect(projects()).toEqual([BOB]);
    load.reading.add(ANNA, -1);
    expect(projects()).toEqual([ANNA, BOB]);
  });

  test('while 32 million characters of its events are in progress', () => {
    load.characters.add(ANNA, 32_000_000);
    expect(projects()).toEqual([ANNA, BOB]);
    load.characters.add(ANNA, 1);
    expect(projects()).toEqual([BOB]);
  });

  test('while half of all results that may wait to be written are its own', () => {
    load.unwritten.add(ANNA, PLACES * 2);
    expect(projects()).toEqual([ANNA, BOB]);
    load.unwritten.add(ANNA, 1);
    expect(projects()).toEqual([BOB]);
  });
});

test('what goes on may take more while there is room, and one alone always', () => {
  const asked = (bytes: number, own: number) => hasRoomFor(load, ANNA, { bytes, own });
  load.characters.add(ANNA, 20_000_000);
  expect(asked(60_000_000, 20_000_000)).toBe(true);
  expect(asked(12_000_000, 1)).toBe(true);
  expect(asked(12_000_001, 1)).toBe(false);
  load.characters.add(BOB, 100_000_000);
  expect(asked(8_000_001, 1)).toBe(false);
  expect(asked(8_000_000, 1)).toBe(true);
});

test('while 128 million characters are in progress, only projects without any begin', () => {
  for (let project = 10; project < 14; project += 1) load.characters.add(project, 32_000_000);
  load.characters.add(ANNA, 1);
  expect(projects()).toEqual([BOB]);
});

test('nothing begins while four results for each place wait to be written', () => {
  for (let project = 10; project < 14; project += 1) load.unwritten.add(project, PLACES);
  expect(projects()).toEqual([ANNA, BOB]);
  load.unwritten.add(10, 1);
  expect(projects()).toEqual([]);
});

test('of very many lines those come first whose project holds least, then those that have waited longest', () => {
  for (let at = 0; at < 1_000; at += 1) {
    lines.expect({ projectId: BOB, functionId: `many ${at}` }, 10_000 - ((at * 7) % 1_000));
  }
  lines.expect({ projectId: ANNA, functionId: 'last' }, 20_000);
  load.inProgress.add(BOB, 1);
  const shares = sharesOf(lines, load, { places: 10_000, mayBeClaimed: () => true });
  const expected = [...lines.all]
    .toSorted((a, b) => a.projectId - b.projectId || a.dueAt - b.dueAt)
    .slice(0, 50);
  expect(shares.map(({ line }) => line.functionId)).toEqual(expected.map(({ functionId }) => functionId));
});
