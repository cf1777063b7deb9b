import { readFileSync } from 'node:fs';
import path from 'node:path';
import type { Command } from 'commander';
import { RESULT_FORMATS, type ResultFormat } from '../../queries/rules/result-file.ts';
import {
  type Access,
  accessFrom,
  addWhere,
  askProject,
  downloadFromProject,
  RemoteRefusal,
  type Where,
} from '../access.ts';
import { CommandError, remark, UsageError } from '../context.ts';
import { writeDownload } from '../download.ts';
import { csvLines, type Table, tableLines } from '../tables.ts';

const SHOWN = ['table', 'csv', 'json'] as const;
type Shown = (typeof SHOWN)[number];

interface Options extends Where {
  format?: string;
  file?: string;
  output?: string;
}

interface Answer extends Table {
  hasMore?: boolean;
}

/** The query that was given: as an argument, in a file, or on standard input. */
function textOf(given: string | undefined, file: string | undefined): string {
  if (given !== undefined && file !== undefined) throw new UsageError('Give the query or a file, not both.');
  if (given !== undefined && given !== '-') return given;
  if (file === undefined && process.stdin.isTTY) {
    throw new UsageError('Give a query, such as "select event, count() from events group by event".');
  }
  return readFileSync(file ?? 0, 'utf8');
}

function formatOf(given: string): Shown {
  const found = SHOWN.find((one) => one === given);
  if (found) return found;
  const isOfFiles = RESULT_FORMATS.some((one) => one === given);
  throw new UsageError(
    isOfFiles
      ? `--format: "${given}" needs --output.`
      : `--format: "${given}" is none of ${SHOWN.join(', ')}, or with --output ${RESULT_FORMATS.join(', ')}.`,
  );
}

/** The format of a file: the one that was given, or that of its name. */
function fileFormat(file: string, given: string | undefined): ResultFormat {
  // A stream of Arrow has a name of its own, which the API suggests, too.
  const format =
    given ??
    path
      .extname(file)
      .slice(1)
      .replace(/^arrows$/, 'arrow');
  const found = RESULT_FORMATS.find((one) => one === format);
  if (found) return found;
  const names = RESULT_FORMATS.join(', ');
  throw new UsageError(
    given === undefined
      ? `--output: say with --format whether ${JSON.stringify(file)} is ${names}.`
      : `--format: "${given}" is none of ${names}, which --output writes.`,
  );
}

/** What the API says is wrong, with the place in the query. */
const faultOf = ({ message, reason }: RemoteRefusal): CommandError =>
  new CommandError(reason ? `${message}\n${reason}` : message);

export function queryCommand(program: Command): void {
  const command = program
    .command('query [select]')
    .description(
      'Ask a question in HogQL about stored events and persons. Without a query, or for `-`, the command reads it from ' +
        'standard input. It uses the API of an installation, so it also runs elsewhere.',
    )
    .option('--file <file>', 'a file with the query')
    .option(
      '--format <format>',
      'how the rows are written: table (the default), csv or json; with --output csv, jsonl, parquet or arrow',
    )
    .option('--output <file>', 'write all rows to a file, whose name may tell the format')
    .addHelpText(
      'after',
      '\nSLUICE_URL, SLUICE_API_KEY and SLUICE_PROJECT_ID take the place of --url, --key and --project.',
    );
  addWhere(command).action(async (given: string | undefined, options: Options) => {
    const { output } = options;
    const task =
      output === undefined
        ? showRows(formatOf(options.format ?? 'table'))
        : writeRows(output, fileFormat(output, options.format));
    const query = textOf(given, options.file);
    const access = accessFrom(options, 'query');
    await task(access, { kind: 'HogQLQuery', query }).catch((error: unknown) => {
      throw error instanceof RemoteRefusal ? faultOf(error) : error;
    });
  });
}

type Task = (access: Access, query: object) => Promise<void>;

/** Shows the first rows, or as many as the query wants. */
const showRows =
  (format: Shown): Task =>
  async (access, query) => {
    const answer = (await askProject(access, 'POST', 'query/', { query })) as Answer;
    const lines =
      format === 'json'
        ? answer.results.map((row) => JSON.stringify(Object.fromEntries(named(answer.columns, row))))
        : format === 'csv'
          ? csvLines(answer)
          : tableLines(answer);
    if (lines.length > 0) process.stdout.write(`${lines.join('\n')}\n`);
    if (answer.hasMore) remark(`There are more than ${answer.results.length} rows. Add a LIMIT.`);
  };

/** Writes all rows to a file. */
const writeRows =
  (file: string, format: ResultFormat): Task =>
  async (access, query) => {
    const bytes = await downloadFromProject(access, `query/?format=${format}`, { query });
    remark(`Wrote ${await writeDownload(bytes, file)} bytes to ${file}.`);
  };

const named = (columns: readonly string[], row: readonly unknown[]): [string, unknown][] =>
  columns.map((name, index) => [name, row[index]]);
