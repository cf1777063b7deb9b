import { readFileSync } from 'node:fs';
import type { Command } from 'commander';
import { accessFrom, addWhere, askProject, RemoteRefusal, type Where } from '../access.ts';
import { CommandError, remark, UsageError } from '../context.ts';
import { csvLines, type Table, tableLines } from '../tables.ts';

const FORMATS = ['table', 'csv', 'json'] as const;
type Format = (typeof FORMATS)[number];

interface Options extends Where {
  format?: string;
  file?: string;
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

function formatOf(given: string | undefined): Format {
  const found = FORMATS.find((one) => one === (given ?? 'table'));
  if (!found) throw new UsageError(`--format: "${given}" is none of ${FORMATS.join(', ')}.`);
  return found;
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
    .option('--format <format>', 'how the rows are written: table (the default), csv or json')
    .addHelpText(
      'after',
      '\nSLUICE_URL, SLUICE_API_KEY and SLUICE_PROJECT_ID take the place of --url, --key and --project.',
    );
  addWhere(command).action(async (given: string | undefined, options: Options) => {
    const format = formatOf(options.format);
    const query = textOf(given, options.file);
    const access = accessFrom(options, 'query');
    const asked = askProject(access, 'POST', 'query/', { query: { kind: 'HogQLQuery', query } });
    const answer = (await asked.catch((error: unknown) => {
      throw error instanceof RemoteRefusal ? faultOf(error) : error;
    })) as Answer;
    const lines =
      format === 'json'
        ? answer.results.map((row) => JSON.stringify(Object.fromEntries(named(answer.columns, row))))
        : format === 'csv'
          ? csvLines(answer)
          : tableLines(answer);
    if (lines.length > 0) process.stdout.write(`${lines.join('\n')}\n`);
    if (answer.hasMore) remark(`There are more than ${answer.results.length} rows. Add a LIMIT.`);
  });
}

const named = (columns: readonly string[], row: readonly unknown[]): [string, unknown][] =>
  columns.map((name, index) => [name, row[index]]);
