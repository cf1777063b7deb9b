import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, test } from '@jest/globals';
import { Kernel } from '../../formats/kernel/kernel.ts';

const root = path.resolve(import.meta.dirname, '../..');

test('what is WebAssembly is what its sources say (node scripts/build-kernel.ts)', () => {
  const folder = mkdtempSync(path.join(tmpdir(), 'sluice-kernel-'));
  try {
    execFileSync(process.execPath, [path.join(root, 'scripts/build-kernel.ts'), folder], { stdio: 'pipe' });
    for (const file of ['formats/kernel/kernel.wasm', 'flags/engine/draws/draws.wasm']) {
      const built = readFileSync(path.join(folder, path.basename(file)));
      expect({ file, isSame: readFileSync(path.join(root, file)).equals(built) }).toEqual({
        file,
        isSame: true,
      });
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});

test('regions do not overlap, are used again, and keep what they hold when they grow', () => {
  const kernel = new Kernel([{ name: 'a', type: 'string', nullable: false }]);
  const sizes = [1, 1000, 5000, 70_000, 1_048_512, 3_000_000];
  const regions = sizes.map((size) => kernel.allocate(size));
  regions.forEach((region, index) => {
    expect(region.size).toBeGreaterThanOrEqual(sizes[index] as number);
    kernel.bytes.fill(index + 1, region.at, region.at + region.size + 64);
  });
  regions.forEach((region, index) => {
    const held = kernel.bytes.subarray(region.at, region.at + region.size + 64);
    expect(held.every((byte) => byte === index + 1)).toBe(true);
  });
  const [first, second] = regions as [(typeof regions)[0], (typeof regions)[0]];
  const grown = kernel.grow(first, 100_000, first.size);
  expect(kernel.bytes.subarray(grown.at, grown.at + first.size).every((byte) => byte === 1)).toBe(true);
  const top = kernel.bytes.length;
  kernel.free(second);
  expect(kernel.allocate(1000).at).toBe(second.at);
  expect(kernel.bytes.length).toBe(top);
});

test('a region that no memory is left for is an error that says so', () => {
  const kernel = new Kernel([{ name: 'a', type: 'string', nullable: false }]);
  expect(() => kernel.allocate(5 * 2 ** 30)).toThrow('There is no memory for another');
});
