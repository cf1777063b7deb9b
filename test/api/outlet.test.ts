import { buffer } from 'node:stream/consumers';
import { describe, expect, test } from '@jest/globals';
import { Outlet } from '../../api/outlet.ts';
import { PATIENCE } from '../support/eventually.ts';

const PIECE = 64 * 1024;

describe('an answer that is sent while it is made', () => {
  test('fails without a trace while it is shorter than a piece', async () => {
    const outlet = new Outlet(PATIENCE);
    outlet.stream.on('error', () => undefined);
    await outlet.write(Buffer.alloc(PIECE - 1));
    expect(outlet.isBegun).toBe(false);
    outlet.fail(new Error('no more'));
    await expect(outlet.begun).rejects.toThrow('no more');
  });

  test('begins with a whole piece', async () => {
    const outlet = new Outlet(PATIENCE);
    const sent = buffer(outlet.stream);
    await outlet.write(Buffer.alloc(PIECE - 1, 'a'));
    await outlet.write(Buffer.from('bc'));
    await outlet.begun;
    outlet.end();
    expect(String(await sent)).toBe(`${'a'.repeat(PIECE - 1)}bc`);
  });

  test('is whole when it is shorter', async () => {
    const outlet = new Outlet(PATIENCE);
    const sent = buffer(outlet.stream);
    await outlet.write(Buffer.from('short'));
    outlet.end();
    await outlet.begun;
    expect(String(await sent)).toBe('short');
  });
});
