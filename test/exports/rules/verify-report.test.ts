import { describe, expect, test } from '@jest/globals';
import type { FileState, Manifest, Verification } from '../../../destinations/file-run.ts';
import { type ComparedRun, type Evidence, judgeInterval } from '../../../exports/rules/verify-report.ts';

const run: ComparedRun = {
  id: 'run',
  records_completed: 9,
  records_total_count: 10,
  content_hash: 'aa',
  manifest_key: 'lake/m.json',
};
const digest = { bytes: 100, sha256: 'f00' };
const manifest: Manifest = {
  version: 1,
  export_id: 'export',
  run_id: 'run',
  model: 'events',
  interval: { start: 'a', end: 'b' },
  format: 'JSONLines',
  compression: null,
  rows: 9,
  bytes: 100,
  hash: 'aa',
  files: [{ key: 'lake/f', rows: 9, ...digest }],
};
const file = (given: Partial<FileState> = {}): FileState => ({
  key: 'lake/f',
  state: 'same',
  expected: digest,
  found: digest,
  ...given,
});
const found = (given: Partial<Verification> = {}): Evidence['files'] => ({
  manifestKey: 'lake/m.json',
  found: { manifest, files: [file()], ...given },
});
const source: Evidence['source'] = { state: 'read', rows: 10, hash: 'aa' };
const good: Evidence = { run, source, files: found() };

describe('files', () => {
  test('that are as they should be', () => {
    expect(judgeInterval(good)).toEqual({
      destination: { rows: 9, files: [file()] },
      manifest: { run_id: 'run', rows: 9, bytes: 100, hash: 'aa', files: 1 },
      verdict: 'same',
      problems: [],
    });
  });

  const altered = { bytes: 100, sha256: 'bad' };
  const truncated = { bytes: 40, sha256: 'bad' };
  test.each<[string, Partial<Evidence>, string, RegExp[]]>([
    [
      'altered',
      { files: found({ files: [file({ state: 'different', found: altered })] }) },
      'differs',
      [/lake\/f has another checksum/],
    ],
    [
      'truncated',
      { files: found({ files: [file({ state: 'different', found: truncated })] }) },
      'differs',
      [/lake\/f has 40 bytes, the manifest says 100/],
    ],
    [
      'gone, one of two',
      { files: found({ files: [file(), file({ key: 'g', state: 'missing', found: null })] }) },
      'differs',
      [/^The file g is not there/],
    ],
    [
      'all gone',
      { files: found({ files: [file({ state: 'missing', found: null })] }) },
      'missing',
      [/lake\/f is not there/],
    ],
    [
      'without a manifest',
      { files: found({ manifest: null, files: [] }) },
      'missing',
      [/^The manifest lake\/m.json is not there\.$/],
    ],
    [
      'moved',
      { files: { manifestKey: 'pond/m.json', found: { manifest: null, files: [] } } },
      'missing',
      [/The run wrote lake\/m.json: the settings/],
    ],
    [
      'of another run',
      { files: found({ manifest: { ...manifest, run_id: 'other' } }) },
      'differs',
      [/of the run other, the run that completed the interval is run/],
    ],
    [
      'with a manifest that was edited',
      { files: found({ manifest: { ...manifest, rows: 8, hash: 'bb' } }) },
      'differs',
      [
        /says 8 rows, the run 9/,
        /checksum of the rows in the manifest/,
        /files of the manifest have 9 rows, the manifest says 8/,
      ],
    ],
    [
      'rows were deleted in the database',
      { source: { ...source, rows: 8 } },
      'differs',
      [/has 8 rows of this interval, the run exported 10/],
    ],
    [
      'rows were changed in the database',
      { source: { ...source, hash: 'cc' } },
      'differs',
      [/their checksums differ/],
    ],
    [
      'rows are past their retention',
      { source: { state: 'expired', rows: null, hash: null } },
      'expired',
      [],
    ],
    [
      'past their retention, and altered',
      {
        source: { state: 'expired', rows: null, hash: null },
        files: found({ files: [file({ state: 'different', found: altered })] }),
      },
      'differs',
      [/another checksum/],
    ],
    ['persons that changed since', { source: { state: 'changing', rows: 3, hash: 'cc' } }, 'same', []],
    ['members that may have changed', { source: { state: 'members', rows: 3, hash: 'cc' } }, 'same', []],
    ['no run is known of', { run: undefined }, 'differs', [/^No run has completed this interval\.$/]],
    [
      'the destination cannot be read',
      { files: undefined as never, failure: { verdict: 'unknown', message: 'denied' } },
      'unknown',
      [/^denied$/],
    ],
  ])('%s', (_, given, verdict, problems) => {
    const judged = judgeInterval({ ...good, ...given });
    expect(judged.verdict).toBe(verdict);
    expect(judged.problems).toHaveLength(problems.length);
    problems.forEach((pattern, index) => {
      expect(judged.problems[index]).toMatch(pattern);
    });
  });

  test('those with problems come first', () => {
    const files = [file({ key: 'a' }), file({ key: 'b', state: 'missing', found: null })];
    expect(
      judgeInterval({ ...good, files: found({ files }) }).destination.files.map((one) => one.key),
    ).toEqual(['b', 'a']);
  });
});

describe('rows', () => {
  const rows = { run: { ...run, content_hash: null, manifest_key: null }, source };
  test.each<[string, Evidence['rows'], string, number | null]>([
    ['all there', { expected: 10, found: 10 }, 'same', 10],
    ['some there', { expected: 10, found: 7 }, 'differs', 7],
    ['none there', { expected: 10, found: 0 }, 'missing', 0],
    ['none, and none expected', { expected: 0, found: 0 }, 'same', 0],
    ['not to be asked', null, 'same', null],
  ])('%s', (_, given, verdict, there) => {
    const judged = judgeInterval({ ...rows, rows: given ?? null });
    expect([judged.verdict, judged.destination.rows]).toEqual([verdict, there]);
  });

  test.each([
    [10, 'same', 0],
    [7, 'unknown', 1],
    [0, 'unknown', 1],
  ] as const)('%d of 10, when members of cohorts may have changed', (there, verdict, problems) => {
    const members = { ...source, state: 'members' as const };
    const judged = judgeInterval({ ...rows, source: members, rows: { expected: 10, found: there } });
    expect([judged.verdict, judged.problems.length]).toEqual([verdict, problems]);
  });
});
