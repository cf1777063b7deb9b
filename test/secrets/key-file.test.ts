import { execFile } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { generateKey, open, parseKeyring, seal } from '../../secrets/envelope.ts';
import { ensureKeyFile, keyFile } from '../../secrets/key-file.ts';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'sluice-keys-'));
});
afterEach(() => rmSync(folder, { recursive: true }));

describe('the key file', () => {
  test('is made once, for its owner only', () => {
    const first = ensureKeyFile(path.join(folder, 'data', 'deep'));
    expect(statSync(keyFile(path.join(folder, 'data', 'deep'))).mode & 0o777).toBe(0o600);
    expect(ensureKeyFile(path.join(folder, 'data', 'deep'))).toBe(first);
    expect(open(parseKeyring(first), seal(parseKeyring(first), 'x', 'c'), 'c')).toBe('x');
  });

  test('made by several processes at once is one file with one key', async () => {
    const program = `
      const { ensureKeyFile } = await import(${JSON.stringify(path.resolve('secrets/key-file.ts'))});
      process.stdout.write(ensureKeyFile(${JSON.stringify(folder)}));`;
    const runs = await Promise.all(
      Array.from({ length: 4 }, () =>
        promisify(execFile)(process.execPath, ['--input-type=module', '-e', program], {
          env: { ...process.env, NODE_OPTIONS: '', NODE_NO_WARNINGS: '1' },
        }),
      ),
    );
    const keys = new Set(runs.map((run) => run.stdout));
    expect(keys.size).toBe(1);
    expect(`${[...keys][0]}\n`).toBe(readFileSync(keyFile(folder), 'utf8'));
    expect(readdirSync(folder)).toEqual(['encryption-keys']);
  });

  test('may hold several keys, one a line', () => {
    const [a, b] = [generateKey('a'), generateKey('b')];
    writeFileSync(keyFile(folder), `${a}\n  ${b}\n\n`, { mode: 0o600 });
    expect(ensureKeyFile(folder)).toBe(`${a},${b}`);
  });

  test('that is damaged is refused, not replaced', () => {
    writeFileSync(keyFile(folder), 'nonsense\n');
    expect(() => ensureKeyFile(folder)).toThrow(
      'SLUICE_ENCRYPTION_KEYS, key 1: expected id:base64, the id made of letters, digits, - and _',
    );
    expect(readFileSync(keyFile(folder), 'utf8')).toBe('nonsense\n');
  });
});
