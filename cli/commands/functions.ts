import { lstatSync } from 'node:fs';
import type { Command } from 'commander';
import { accessFrom, addWhere, type Where } from '../access.ts';
import { remark, UsageError } from '../context.ts';
import { programsIn } from '../functions/files.ts';
import {
  type ChoiceOptions,
  type DeadLetterOptions,
  deadLetters,
  type RerunOptions,
  rerun,
  settle,
} from '../functions/invocations.ts';
import { pull } from '../functions/pull.ts';
import { push } from '../functions/push.ts';
import { Remote } from '../functions/remote.ts';
import { type BeginOptions, broadcast, replay, replays, type SteerOptions } from '../functions/replays.ts';
import { type TryOptions, tryFile } from '../functions/try.ts';

const remoteOf = (where: Where): Remote => new Remote(accessFrom(where, 'functions'));

/** Turns folders into the programs in them. */
function filesOf(given: readonly string[]): string[] {
  return (given.length > 0 ? given : ['.']).flatMap((one) => {
    const found = lstatSync(one, { throwIfNoEntry: false });
    if (!found) throw new UsageError(`There is no file or folder ${one}.`);
    return found.isDirectory() ? programsIn(one) : [one];
  });
}

const several = (one: string, all: string[]): string[] => [...all, one];

export function functionsCommand(program: Command): void {
  const group = program
    .command('functions')
    .description(
      'Keep functions as files: a program (.hog, or .ts for browsers) and a definition (.json) of the same name. The ' +
        'commands use the API of an installation, so they also run elsewhere, such as in CI.',
    )
    .addHelpText(
      'after',
      '\nSLUICE_URL, SLUICE_API_KEY and SLUICE_PROJECT_ID take the place of --url, --key and --project.\n' +
        'Exit codes: 0 success, 1 an error, 2 wrong use, 3 the filters do not match the event of a test.',
    )
    .exitOverride(({ exitCode }) => process.exit(exitCode === 0 ? 0 : 2));

  addWhere(group.command('test <file>'))
    .description('Run a function of a file once with one event. Nothing is stored.')
    .option('--event <uuid>', 'try with this stored event')
    .option('--newest', 'try with the newest stored event that the filters match')
    .option('--event-file <file>', 'try with the event in a JSON file')
    .option('--mock', 'show requests and do not send them (the default)')
    .option('--real', 'send requests')
    .option('--expect <file>', 'compare the test with a JSON file; the exit code is 1 if something differs')
    .option('--json', 'print the whole result as JSON')
    .action((file: string, options: Where & TryOptions) =>
      tryFile(remoteOf(options), file, options, process.env),
    );

  addWhere(group.command('push [paths...]'))
    .description(
      'Create or change functions as files or folders say. Nothing is pushed if one of them is wrong.',
    )
    .option('--dry-run', 'check the files and say what would be done')
    .option('--force', 'overwrite changes that were made on the server')
    .action((paths: string[], options: Where & { dryRun?: boolean; force?: boolean }) => {
      const { dryRun = false, force = false } = options;
      return push(remoteOf(options), filesOf(paths), { env: process.env, dryRun, force });
    });

  addWhere(group.command('pull [folder]'))
    .description('Write the functions of a project as files. Secrets stay on the server.')
    .option('--id <id>', 'write only this function; can be repeated', several, [])
    .option('--force', 'overwrite files that were changed here')
    .action((folder: string | undefined, options: Where & { id: string[]; force?: boolean }) =>
      pull(remoteOf(options), folder ?? '.', { ids: options.id, force: options.force ?? false }),
    );

  const paced = (command: Command) =>
    addWhere(command)
      .option('--rate <number>', 'invocations in a second on average, or "none" for as many as fit (100)')
      .option('--count', 'only count, and run nothing')
      .option('--wait', 'wait until it has ended');

  paced(group.command('replay <id>'))
    .description('Run a function for past events that its filters match.')
    .option('--after <time>', 'events at or after this time')
    .option('--before <time>', 'events before this time')
    .action((id: string, options: Where & BeginOptions) => replay(remoteOf(options), id, options));

  paced(group.command('broadcast <id>'))
    .description('Run a function once for each person that matches.')
    .option('--properties <json>', 'conditions on persons; by default those of the function')
    .action((id: string, options: Where & BeginOptions) => broadcast(remoteOf(options), id, options));

  addWhere(group.command('replays <id> [replay]'))
    .description('List the replays, broadcasts and reruns of a function, or show or steer one of them.')
    .option('--pause', 'pause it')
    .option('--resume', 'let it go on')
    .option('--cancel', 'cancel it')
    .action((id: string, one: string | undefined, options: Where & SteerOptions) =>
      replays(remoteOf(options), id, one, options),
    );

  const choosing = (command: Command, after: string) =>
    addWhere(command)
      .option('--id <invocation>', 'this invocation; can be repeated', several, [])
      .option('--after <time>', `those that ${after} at or after this time`)
      .option('--before <time>', `those that ${after} before this time`)
      .option('--search <text>', 'those with this text in the error, a request or an answer');

  choosing(group.command('rerun <id>'), 'ended')
    .description('Run ended invocations of a function again: those with ids, or those of a range of time.')
    .option('--status <status>', 'failed (the default of a range), succeeded or cancelled')
    .option(
      '--function-version <version>',
      'which version runs: original (the default), current, or a number',
    )
    .option('--rate <number>', 'of a range: invocations in a second on average, or "none" (100)')
    .option('--count', 'of a range: only count, and run nothing')
    .option('--wait', 'of a range: wait until all are queued')
    .action((id: string, options: Where & RerunOptions & { functionVersion?: string }) => {
      const { functionVersion: version, ...others } = options;
      return rerun(remoteOf(options), id, { ...others, ...(version === undefined ? {} : { version }) });
    });

  addWhere(group.command('dead-letters <id>'))
    .description('List failed invocations of a function that were neither dismissed nor run again.')
    .option('--after <time>', 'those that ended at or after this time')
    .option('--before <time>', 'those that ended before this time')
    .option('--search <text>', 'those with this text in the error, a request or an answer')
    .option('--limit <number>', 'at most so many')
    .option('--json', 'print one JSON object a line, with all attempts')
    .action((id: string, options: Where & DeadLetterOptions) => deadLetters(remoteOf(options), id, options));

  choosing(group.command('dismiss <id>'), 'ended')
    .description('Say that failed invocations of a function need nothing more.')
    .action((id: string, options: Where & ChoiceOptions) =>
      settle(remoteOf(options), id, 'dismiss', options),
    );

  choosing(group.command('cancel <id>'), 'are due')
    .description('Cancel waiting invocations of a function.')
    .action((id: string, options: Where & ChoiceOptions) => settle(remoteOf(options), id, 'cancel', options));

  group.action(() => {
    remark(group.helpInformation());
    throw new UsageError(
      'Say what to do: test, push, pull, replay, broadcast, replays, rerun, dead-letters, dismiss or cancel.',
    );
  });
}
