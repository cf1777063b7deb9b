import { expect, test } from '@jest/globals';
import { BodyPool } from '../../api/public/body-memory.ts';
import { SharedChunk } from '../../capture/ingest/copy-bytes.ts';
import { prepare } from '../../capture/ingest/event-row.ts';
import { capturedEvent } from './support.ts';

const KB = 1024;

test('the memory of a body is lent again once it was given back, and never twice at a time', () => {
  const bodies = new BodyPool();
  const first = bodies.take(100 * KB);
  expect(first).toHaveLength(100 * KB);
  expect(bodies.take(100 * KB).buffer).not.toBe(first.buffer);
  bodies.give(first);
  bodies.give(first);
  const next = bodies.take(127 * KB);
  expect(next).toHaveLength(127 * KB);
  expect(next.buffer).toBe(first.buffer);
  expect(bodies.take(127 * KB).buffer).not.toBe(first.buffer);
});

test('what was not lent is not taken, what is too much is not kept, and nothing after a rush', () => {
  const bodies = new BodyPool();
  const foreign = Buffer.allocUnsafeSlow(64 * KB);
  bodies.give(foreign);
  expect(bodies.take(64 * KB).buffer).not.toBe(foreign.buffer);

  const many = Array.from({ length: 9 }, () => bodies.take(1024 * KB));
  for (const one of many) bodies.give(one);
  const kept = new Set(many.map(({ buffer }) => buffer));
  const again = Array.from({ length: 9 }, () => bodies.take(1024 * KB));
  expect(again.filter(({ buffer }) => kept.has(buffer))).toHaveLength(8);

  for (const one of again) bodies.give(one);
  bodies.clear();
  const given = new Set(again.map(({ buffer }) => buffer));
  expect(given.has(bodies.take(1024 * KB).buffer)).toBe(false);
});

test('a chunk is used again when the last of its holders has let go of it', () => {
  const chunk = new SharedChunk(0);
  chunk.hold();
  chunk.release();
  expect(new SharedChunk(0).bytes.buffer).not.toBe(chunk.bytes.buffer);
  chunk.release();
  expect(new SharedChunk(0).bytes.buffer).toBe(chunk.bytes.buffer);
});

test('the begun rows of a request stay as they are until it lets go of them, whatever comes meanwhile', async () => {
  const properties = { text: 'x'.repeat(10_000) };
  const begun = await prepare(1, [capturedEvent({ properties }), capturedEvent({ properties })]);
  const rowsOf = () => begun.events.map(({ head }) => head.bytes.toString('latin1', head.from, head.to));
  const before = rowsOf();
  for (let index = 0; index < 200; index += 1) {
    const other = await prepare(2, [capturedEvent({ properties: { text: 'y'.repeat(10_000) } })]);
    for (const chunk of other.chunks) chunk.release();
  }
  expect(rowsOf()).toEqual(before);
  expect(before[0]).toContain(properties.text);
});

test('a request that is refused holds nothing', async () => {
  const [chunk] = (await prepare(1, [capturedEvent()])).chunks;
  chunk?.release();
  const refused = () => prepare(1, [capturedEvent(), capturedEvent({ uuid: 'none' })]);
  expect(refused).toThrow('The event at index 1 has a uuid that is none.');
  // This needs a chunk of its own, so that the one before is free now.
  await prepare(1, [capturedEvent({ properties: { text: 'z'.repeat(250 * KB) } })]);
  expect(new SharedChunk(0).bytes.buffer).toBe(chunk?.bytes.buffer);
});
