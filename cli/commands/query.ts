import { readFileSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
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
import { inert, inertJson } from '../inert.ts';
import { csvLines, type Table, tableLines } from '../tables.ts';

const SHOWN = ['table', 'csv', 'json'] as const;
type Shown = (typeof SHOWN)[number];

interface Options extends Where {
  format?: string;
  file?: string;
  output?: string;
  async?: boolean;
  id?: string;
  escapeFormulas?: boolean;
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
    .option('--async', 'ask in the background, for up to ten minutes, and wait for the answer')
    .option('--id <id>', 'wait for a query that was begun with --async, in place of a new one')
    .option('--escape-formulas', 'in CSV, keep spreadsheets from taking texts for formulas')
    .addHelpText(
      'after',
      '\nSLUICE_URL, SLUICE_API_KEY and SLUICE_PROJECT_ID take the place of --url, --key and --project.',
    );
  addWhere(command).action(async (given: string | undefined, options: Options) => {
    const { output } = options;
    const { id } = options;
    const isSheet = options.escapeFormulas ?? false;
    if (output !== undefined && (options.async || id !== undefined)) {
      throw new UsageError(
        'A query in the background has rows to show. Use --output without --async and --id.',
      );
    }
    const format =
      output === undefined ? formatOf(options.format ?? 'table') : fileFormat(output, options.format);
    if (isSheet && format !== 'csv') throw new UsageError('--escape-formulas is for --format csv.');
    if (id !== undefined && (given !== undefined || options.file !== undefined)) {
      throw new UsageError('--id names a query that was begun before. Do not give another one.');
    }
    const query = id === undefined ? { kind: 'HogQLQuery', query: textOf(given, options.file) } : undefined;
    const access = accessFrom(options, 'query');
    const work = async () => {
      if (output !== undefined) return writeRows(access, query, output, format as ResultFormat, isSheet);
      const answer =
        query && !options.async ? await ask(access, query) : await inBackground(access, query, id);
      showRows(answer, format as Shown, isSheet);
    };
    await work().catch((error: unknown) => {
      throw error instanceof RemoteRefusal ? faultOf(error) : error;
    });
  });
}

const ask = async (access: Access, query: object): Promise<Answer> =>
  (await askProject(access, 'POST', 'query/', { query })) as Answer;

/** The longest pause between two questions whether a query in the background has ended, in milliseconds. */
const LONGEST_PAUSE = 2_000;

interface Status {
  query_status: { id: string; complete: boolean; results?: Answer };
}

/** Begins a query in the background, or finds the one with this id, and waits for its answer. */
async function inBackground(access: Access, query: object | undefined, known = ''): Promise<Answer> {
  let id = known;
  if (query) {
    const begun = (await askProject(access, 'POST', 'query/', { query, async: true })) as Status;
    id = begun.query_status.id;
    remark(
      `The query goes on in the background, also if you stop waiting. Then ask again: npx sluice query --id ${id}`,
    );
  }
  const at = `query/${encodeURIComponent(id)}/`;
  for (let wait = 100; ; wait = Math.min(wait * 2, LONGEST_PAUSE)) {
    const { query_status: status } = (await askProject(access, 'GET', at)) as Status;
    if (status.complete && status.results) return status.results;
    await pause(wait);
  }
}

/** Shows the first rows, or as many as the query wants. */
function showRows(answer: Answer, format: Shown, isSheet: boolean): void {
  const lines =
    format === 'json'
      ? answer.results.map((row) => inertJson(JSON.stringify(Object.fromEntries(named(answer.columns, row)))))
      : format === 'csv'
        ? csvLines(process.stdout.isTTY ? inertTable(answer) : answer, isSheet)
        : tableLines(answer);
  if (lines.length > 0) process.stdout.write(`${lines.join('\n')}\n`);
  if (answer.hasMore) remark(`There are more than ${answer.results.length} rows. Add a LIMIT.`);
}

/** A table whose texts do nothing to a terminal. Programs and files get them as they are. */
const inertTable = ({ columns, results }: Table): Table => ({
  columns: columns.map(inert),
  results: results.map((row) => row.map(inertValue)),
});

function inertValue(value: unknown): unknown {
  if (typeof value === 'string') return inert(value);
  return typeof value === 'object' && value !== null ? inertJson(JSON.stringify(value)) : value;
}

/** Writes all rows to a file. */
async function writeRows(
  access: Access,
  query: object | undefined,
  file: string,
  format: ResultFormat,
  isSheet: boolean,
): Promise<void> {
  const given = `query/?format=${format}${isSheet ? '&escape_formulas=true' : ''}`;
  const bytes = await downloadFromProject(access, given, { query });
  remark(`Wrote ${await writeDownload(bytes, file)} bytes to ${file}.`);
}

const named = (columns: readonly string[], row: readonly unknown[]): [string, unknown][] =>
  columns.map((name, index) => [name, row[index]]);
