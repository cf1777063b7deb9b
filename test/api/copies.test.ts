import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, expect, test } from '@jest/globals';
import { openCopies } from '../../api/copies.ts';
import { keyCopies } from '../../api/public/copied.ts';

const directories: string[] = [];
afterAll(() => {
  for (const one of directories) rmSync(one, { recursive: true, force: true });
});

function place(): string {
  const directory = mkdtempSync(path.join(os.tmpdir(), 'sluice-copies-'));
  directories.push(directory);
  return path.join(directory, 'copies');
}

function opened(directory: string, options: { mostBytes?: number } = {}) {
  const told: string[] = [];
  const tell = (_about: object, message: string) => told.push(message);
  const logger = { warn: tell, info: tell } as unknown as Parameters<typeof openCopies>[0]['logger'];
  // Only what a test asks for is written.
  return openCopies({ directory, logger, writeAfter: 3_600_000, ...options }).then((copies) => ({
    copies,
    told,
  }));
}

test('a copy is there for the next process, whole, and for nobody else', async () => {
  const directory = place();
  const { copies } = await opened(directory);
  copies.save('flags', '7', () => ['one', '{"two":"2\\n"}']);
  expect([copies.has('flags', '7'), copies.has('flags', '8')]).toEqual([true, false]);
  await copies.close();
  const modes = [directory, `${directory}/flags`, `${directory}/flags/7`].map(
    (one) => statSync(one).mode & 0o777,
  );
  expect(modes).toEqual([0o700, 0o700, 0o600]);
  const { copies: next } = await opened(directory);
  expect(await next.read('flags', '7')).toEqual(['one', '{"two":"2\\n"}']);
  expect(await next.read('flags', '8')).toBeUndefined();
  expect([next.count('flags'), next.count('keys')]).toEqual([1, 0]);
  next.remove('flags', '7');
  await next.close();
  expect(readdirSync(`${directory}/flags`)).toEqual([]);
});

test('the last of many changes is written, once', async () => {
  const { copies } = await opened(place());
  let written = 0;
  for (let number = 0; number < 100; number += 1) {
    copies.save('flags', '7', () => {
      written += 1;
      return [String(number)];
    });
  }
  await copies.flush();
  expect([written, await copies.read('flags', '7')]).toEqual([1, ['99']]);
  await copies.close();
});

test.each([
  ['cut short', (content: Buffer) => content.subarray(0, content.length - 10)],
  ['empty', () => Buffer.alloc(0)],
  ['changed', (content: Buffer) => Buffer.from(content.toString().replace('value', 'valve'))],
  ['of another project', (content: Buffer) => content],
  ['of another version', (content: Buffer) => Buffer.from(content.toString().replace('copy 2', 'copy 1'))],
])('a file that is %s is ignored, and the log says so', async (how, harm) => {
  const directory = place();
  const { copies, told } = await opened(directory);
  copies.save('flags', '7', () => ['value']);
  await copies.flush();
  const name = how === 'of another project' ? '8' : '7';
  writeFileSync(`${directory}/flags/${name}`, harm(readFileSync(`${directory}/flags/7`)));
  expect(await copies.read('flags', name)).toBeUndefined();
  expect(told).toEqual(['a copy on disk is damaged, or of another version; it is ignored']);
  await copies.close();
});

test('the oldest copies make room', async () => {
  const directory = place();
  const { copies } = await opened(directory, { mostBytes: 3_000 });
  for (let number = 0; number < 10; number += 1) {
    copies.save('flags', String(number), () => ['x'.repeat(900)]);
  }
  await copies.close();
  expect(readdirSync(`${directory}/flags`).sort()).toEqual(['7', '8', '9']);
});

test('no key can be read from the names or the contents of files', async () => {
  const directory = place();
  const { copies } = await opened(directory);
  const keys = keyCopies(copies);
  const project = { id: 7, anonymize_ips: false, transformations: null };
  keys.save('phc_secret', project);
  await copies.flush();
  expect(await keys.read('phc_secret')).toEqual(project);
  expect(await keys.read('phc_other')).toBeUndefined();
  const [name] = readdirSync(`${directory}/keys`) as [string];
  expect(`${name} ${readFileSync(`${directory}/keys/${name}`)}`).not.toContain('phc_');
  await copies.close();
});

test('a directory that cannot be used is told of, and costs nothing else', async () => {
  const directory = place();
  writeFileSync(directory, 'a file');
  const { copies, told } = await opened(directory);
  copies.save('flags', '7', () => ['value']);
  await copies.close();
  expect(await copies.read('flags', '7')).toBeUndefined();
  expect(told.length).toBeGreaterThan(0);
});
