import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeEach, describe, expect, test } from '@jest/globals';
import { bindDestination } from '../../destinations/bind.ts';
import type { RawConfig } from '../../destinations/config.ts';
import { runTestStep } from '../../destinations/settings.ts';
import { createEgress } from '../../egress/egress.ts';
import { deliver, failureOf, RUN } from './harness.ts';
import { sampleEvents } from './sample.ts';

const folder = mkdtempSync(path.join(tmpdir(), 'sluice-test-file-'));
const egress = createEgress();
let serial = 0;
let exportRoot = '';
afterAll(async () => {
  await egress.close();
  rmSync(folder, { recursive: true, force: true });
});
beforeEach(() => {
  serial += 1;
  exportRoot = path.join(folder, `root-${serial}`);
});

const send = (config: RawConfig, events = sampleEvents(10)) =>
  deliver({ type: 'File', config, surroundings: { egress, exportRoot }, events });
const everything = (below: string) =>
  readdirSync(below, { recursive: true, withFileTypes: true })
    .filter((entry) => !entry.isDirectory())
    .map((entry) => path.relative(below, path.join(entry.parentPath, entry.name)))
    .sort();

test('files lie below the directory, under their keys', async () => {
  await send({ directory: 'lake/a', prefix: '{table}/{year}/' });
  const stem = 'lake/a/events/2026/2026-01-31T12:00:00+00:00-2026-01-31T13:00:00+00:00';
  expect(everything(exportRoot)).toEqual([`${stem}.jsonl`, `${stem}_manifest.json`]);
});

test('files and directories are for their owner only, whatever the umask', async () => {
  const umask = process.umask(0);
  try {
    await send({ directory: 'lake/a', prefix: '{table}/' });
  } finally {
    process.umask(umask);
  }
  const found = readdirSync(exportRoot, { recursive: true, withFileTypes: true });
  const modes = found.map((entry) => [
    entry.isDirectory(),
    statSync(path.join(entry.parentPath, entry.name)).mode & 0o777,
  ]);
  expect(new Set(modes.map(String))).toEqual(new Set([`true,${0o700}`, `false,${0o600}`]));
  expect(statSync(exportRoot).mode & 0o777).toBe(0o700);
});

describe('symbolic links', () => {
  const outside = path.join(folder, 'outside');
  beforeEach(() => {
    rmSync(outside, { recursive: true, force: true });
    mkdirSync(outside);
    mkdirSync(exportRoot);
  });

  test.each([
    ['the directory', 'link', ''],
    ['a directory above it', 'link/deeper', ''],
    ['a folder of the prefix', 'real', 'link/'],
  ])('out of the root are refused: %s', async (_name, directory, prefix) => {
    const at = prefix ? path.join(exportRoot, directory) : exportRoot;
    mkdirSync(at, { recursive: true });
    symlinkSync(outside, path.join(at, 'link'));
    const failed = await failureOf(send({ directory, prefix }));
    expect(failed).toMatchObject({ code: 'denied', retryable: false });
    expect(failed.message).toContain('"link" is a symbolic link that leads out of SLUICE_EXPORT_ROOT');
    expect(everything(outside)).toEqual([]);
    const step = await runTestStep({ type: 'File', config: { directory: 'link' } }, 0, {
      egress,
      exportRoot,
    });
    if (!prefix) expect(step?.result?.status).toBe('Failed');
  });

  test('within the root are followed', async () => {
    mkdirSync(path.join(exportRoot, 'real'));
    symlinkSync('real', path.join(exportRoot, 'link'));
    await send({ directory: 'link' });
    expect(everything(path.join(exportRoot, 'real'))).toHaveLength(2);
  });

  test('in the place of a file are replaced, not followed', async () => {
    writeFileSync(path.join(outside, 'target'), 'untouched');
    const bound = bindDestination({ type: 'File', config: { directory: 'a' } }, { egress, exportRoot });
    if (bound.kind !== 'files') throw new Error('File takes files');
    mkdirSync(path.join(exportRoot, 'a'));
    symlinkSync(path.join(outside, 'target'), path.join(exportRoot, 'a', bound.keys(RUN).file(0)));
    await send({ directory: 'a' });
    expect(readFileSync(path.join(outside, 'target'), 'utf8')).toBe('untouched');
    expect((await bound.verify(RUN)).files[0]?.state).toBe('same');
  });

  test('in the place of the manifest are refused', async () => {
    const bound = bindDestination({ type: 'File', config: { directory: 'a' } }, { egress, exportRoot });
    if (bound.kind !== 'files') throw new Error('File takes files');
    mkdirSync(path.join(exportRoot, 'a'));
    symlinkSync('/etc/passwd', path.join(exportRoot, 'a', bound.keys(RUN).manifest));
    expect(await failureOf(send({ directory: 'a' }))).toMatchObject({ code: 'denied' });
  });

  test('the root itself may be one', async () => {
    rmSync(exportRoot, { recursive: true });
    symlinkSync(outside, exportRoot);
    await send({ directory: 'a' });
    expect(everything(outside)).toHaveLength(2);
  });
});

test('a file where a directory has to be is for the operator', async () => {
  mkdirSync(exportRoot);
  writeFileSync(path.join(exportRoot, 'taken'), 'a file');
  expect(await failureOf(send({ directory: 'taken' }))).toMatchObject({ retryable: false });
});

const root = path.resolve(import.meta.dirname, '../..');
const program = path.join(import.meta.dirname, 'programs/write-files.ts');

test('what a killed worker left half-written is removed by the next attempt, and nothing else', async () => {
  const child = spawn(process.execPath, [program, exportRoot, 'hang'], {
    cwd: root,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  await once(child.stdout, 'data');
  child.kill('SIGKILL');
  await once(child, 'exit');
  const left = everything(exportRoot);
  expect(left).toHaveLength(1);
  expect(left[0]).toMatch(/^lake\/\..*\.jsonl\.[0-9a-f]{12}\.partial$/);
  const others = path.join(exportRoot, 'lake', '.2020-other.jsonl.0123456789ab.partial');
  writeFileSync(others, 'of another interval');
  await send({ directory: 'lake' });
  expect(everything(exportRoot).filter((name) => name.endsWith('.partial'))).toEqual([
    path.relative(exportRoot, others),
  ]);
});

// Only Linux lets anybody have a file system of their own.
const onLinux = process.platform === 'linux' ? test : test.skip;

onLinux('a full disk: a clear error that is tried again, and nothing is left on it', () => {
  mkdirSync(exportRoot);
  // A file system of 2 MB that only this process and its children see.
  const script = 'mount -t tmpfs -o size=2m tmpfs "$1" && exec "$2" "$3" "$1" fill';
  const said = execFileSync(
    'unshare',
    ['--mount', '--map-root-user', 'sh', '-c', script, 'sh', exportRoot, process.execPath, program],
    { cwd: root, encoding: 'utf8' },
  );
  const { code, retryable, message, left } = JSON.parse(said.trim().split('\n').at(-1) as string);
  expect({ code, retryable, left }).toEqual({ code: 'no-space', retryable: true, left: [] });
  expect(message).toMatch(/^File "lake\/2026.*\.jsonl": no space is left on the disk$/);
  expect(existsSync(path.join(exportRoot, 'lake'))).toBe(false);
});
