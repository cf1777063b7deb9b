import { expect, test } from '@jest/globals';
import { Aside } from '../../functions/delivery/aside.ts';
import type { Line } from '../../functions/delivery/lines.ts';
import { PerProject } from '../../functions/delivery/per-project.ts';

const line: Line = { projectId: 1, functionId: 'f', inFlight: 0, dueAt: 0, since: 0, isCrowded: false };
const shares = [
  { line, count: 3 },
  { line: { ...line, functionId: 'g' }, count: 4 },
];

test('what a claim may fill is held for its project while it is under way, also if it fails', async () => {
  const reserved = new PerProject();
  const aside = new Aside(reserved);
  for (const end of ['resolve', 'reject'] as const) {
    const claim = Promise.withResolvers<void>();
    const ended = Promise.withResolvers<void>();
    aside.begin(shares, () => claim.promise.catch(() => undefined), ended.resolve);
    expect([aside.isBusy, reserved.of(1), reserved.all]).toEqual([true, 7, 7]);
    claim[end]();
    await ended.promise;
    expect([aside.isBusy, reserved.of(1), reserved.all]).toEqual([false, 0, 0]);
  }
});

test('places are free before the distance to the next claim is over', async () => {
  const reserved = new PerProject();
  const aside = new Aside(reserved, 300);
  aside.begin(
    shares,
    async () => undefined,
    () => undefined,
  );
  await new Promise(setImmediate);
  expect([aside.isBusy, reserved.all]).toEqual([true, 0]);
  await aside.idle();
});
