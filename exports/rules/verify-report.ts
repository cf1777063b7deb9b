import type { RowsFound } from '../../destinations/destination.ts';
import type { FileState, Verification } from '../../destinations/file-run.ts';
import type { RunRow } from '../rows/runs.ts';

/**
 * The results of a verification:
 *
 * - `same`: the destination has what the run exported and what the database has
 * - `differs`: the destination has something else
 * - `missing`: the destination has nothing of the interval
 * - `expired`: the destination has what the run exported, but the database has deleted the events
 * - `unknown`: the destination could not be read, or what it has cannot be compared with anything
 */
export const VERDICTS = ['same', 'differs', 'missing', 'expired', 'unknown'] as const;
export type Verdict = (typeof VERDICTS)[number];

export interface VerifyReport {
  interval: { start: string | null; end: string };
  /** The completed run that the destination was compared with. */
  run_id: string | null;
  source: {
    /**
     * - `read`: the rows were read again
     * - `changing`: they were read again, but not compared, because rows of this model change after the interval
     * - `members`: they were read again, but not compared, because members of cohorts may have changed since the run
     * - `once`: they were not read, because the result of a query is that of the time of its run
     * - `expired`: they were not read, because they are past their retention
     * - `unread`: they could not be read with the settings that the export has now
     */
    state: 'read' | 'changing' | 'members' | 'once' | 'expired' | 'unread';
    rows: number | null;
    hash: string | null;
  };
  destination: {
    /** Null if the destination cannot show its rows. */
    rows: number | null;
    /** At most 500 files. Those with a problem come first. */
    files: FileState[];
  };
  manifest: { run_id: string; rows: number; bytes: number; hash: string; files: number } | null;
  verdict: Verdict;
  /** A sentence for each problem. */
  problems: string[];
  checked_at: string;
}

export type ComparedRun = Pick<
  RunRow,
  'id' | 'records_completed' | 'records_total_count' | 'content_hash' | 'manifest_key'
>;

/** What a verification has found. */
export interface Evidence {
  run: ComparedRun | undefined;
  source: VerifyReport['source'] & { problem?: string };
  /** What a destination that takes files has. */
  files?: { manifestKey: string; found: Verification };
  /** What a destination that takes rows has. Null: it cannot show its rows. */
  rows?: RowsFound | null;
  /** Why the destination could not be read. */
  failure?: { verdict: Exclude<Verdict, 'same' | 'expired'>; message: string };
}

const MOST_FILES = 500;

/** Judges an interval by the evidence. */
export function judgeInterval(
  evidence: Evidence,
): Pick<VerifyReport, 'destination' | 'manifest' | 'verdict' | 'problems'> {
  const { run, source, files, rows, failure } = evidence;
  const problems: string[] = [];
  if (!run) problems.push('No run has completed this interval.');
  if (source.problem !== undefined) problems.push(source.problem);
  problems.push(...sourceProblems(evidence));
  const nothing = { destination: { rows: null, files: [] }, manifest: null };
  if (failure) return { ...nothing, verdict: failure.verdict, problems: [failure.message, ...problems] };
  if (files) {
    const { found, manifestKey } = files;
    problems.push(...fileProblems(found, manifestKey, run));
    const { manifest } = found;
    const verdict = nothingThere(found) ? 'missing' : verdictOf(problems, source.state);
    const sorted = [...found.files].sort((a, b) => Number(a.state === 'same') - Number(b.state === 'same'));
    const same = found.files.every((one) => one.state === 'same');
    return {
      destination: { rows: same ? (manifest?.rows ?? null) : null, files: sorted.slice(0, MOST_FILES) },
      manifest: manifest && {
        run_id: manifest.run_id,
        rows: manifest.rows,
        bytes: manifest.bytes,
        hash: manifest.hash,
        files: manifest.files.length,
      },
      verdict,
      problems,
    };
  }
  if (!rows) return { ...nothing, verdict: verdictOf(problems, source.state), problems };
  if (source.state === 'read' && rows.found < rows.expected) {
    problems.push(`The destination has ${rows.found} of the ${rows.expected} rows.`);
  }
  if (source.state === 'members' && rows.found < rows.expected) {
    const message = `The destination has ${rows.found} of the ${rows.expected} rows that the database has now. Members of cohorts may have changed since the run, so this does not tell whether rows are missing.`;
    return {
      ...{ destination: { rows: rows.found, files: [] }, manifest: null },
      ...{ verdict: 'unknown', problems: [...problems, message] },
    };
  }
  const none = rows.found === 0 && rows.expected > 0;
  return {
    destination: { rows: rows.found, files: [] },
    manifest: null,
    verdict: none ? 'missing' : verdictOf(problems, source.state),
    problems,
  };
}

function verdictOf(problems: readonly string[], source: VerifyReport['source']['state']): Verdict {
  if (problems.length > 0) return 'differs';
  return source === 'expired' ? 'expired' : 'same';
}

const nothingThere = ({ manifest, files }: Verification): boolean =>
  manifest === null || (files.length > 0 && files.every((one) => one.state === 'missing'));

/** Compares what the database has now with what the run exported. Returns a sentence for each problem. */
export function sourceProblems({ run, source }: Pick<Evidence, 'run' | 'source'>): string[] {
  if (!run || source.state !== 'read') return [];
  const exported = run.records_total_count ?? run.records_completed;
  if (source.rows !== null && exported !== null && source.rows !== exported) {
    return [`The database has ${source.rows} rows of this interval, the run exported ${exported}.`];
  }
  if (source.hash !== null && run.content_hash !== null && source.hash !== run.content_hash) {
    return ['The rows in the database are not those that the run exported: their checksums differ.'];
  }
  return [];
}

function fileProblems(
  { manifest, files }: Verification,
  manifestKey: string,
  run: ComparedRun | undefined,
): string[] {
  const moved = run?.manifest_key != null && run.manifest_key !== manifestKey;
  if (manifest === null) {
    const hint = moved
      ? ` The run wrote ${run.manifest_key}: the settings of the export were changed since.`
      : '';
    return [`The manifest ${manifestKey} is not there.${hint}`];
  }
  const problems: string[] = [];
  if (run && manifest.run_id !== run.id) {
    problems.push(
      `The manifest is of the run ${manifest.run_id}, the run that completed the interval is ${run.id}.`,
    );
  }
  if (run && run.records_completed !== null && manifest.rows !== run.records_completed) {
    problems.push(`The manifest says ${manifest.rows} rows, the run ${run.records_completed}.`);
  }
  if (run && run.content_hash !== null && manifest.hash !== run.content_hash) {
    problems.push('The checksum of the rows in the manifest is not that of the run.');
  }
  const sum = manifest.files.reduce((total, file) => total + file.rows, 0);
  if (sum !== manifest.rows) {
    problems.push(`The files of the manifest have ${sum} rows, the manifest says ${manifest.rows}.`);
  }
  for (const { key, state, expected, found } of files) {
    if (state === 'missing') problems.push(`The file ${key} is not there.`);
    if (state !== 'different') continue;
    problems.push(
      found && found.bytes !== expected.bytes
        ? `The file ${key} has ${found.bytes} bytes, the manifest says ${expected.bytes}.`
        : `The file ${key} has another checksum than the manifest says.`,
    );
  }
  return problems;
}
