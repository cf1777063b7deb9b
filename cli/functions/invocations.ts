import { remark, say, sayJson, UsageError } from '../context.ts';
import type { Chosen, Remote, RemoteInvocation } from './remote.ts';
import { type BeginOptions, common, follow, instant } from './replays.ts';

export interface ChoiceOptions {
  id?: string[];
  after?: string;
  before?: string;
  search?: string;
}

function chosen({ id = [], after, before, search }: ChoiceOptions): Chosen {
  return {
    ...(id.length > 0 ? { invocation_ids: id } : {}),
    ...(after === undefined ? {} : { after: instant('after', after) }),
    ...(before === undefined ? {} : { before: instant('before', before) }),
    ...(search === undefined ? {} : { search }),
  };
}

/** Whoever chooses nothing would choose everything. */
function required(options: ChoiceOptions): Chosen {
  const choice = chosen(options);
  if (Object.keys(choice).length > 0) return choice;
  throw new UsageError(
    'Say which invocations: --id <invocation>, --after <time>, --before <time> or --search <text>.',
  );
}

export interface RerunOptions extends ChoiceOptions, Pick<BeginOptions, 'rate' | 'count' | 'wait'> {
  status?: string;
  version?: string;
}

/** Runs ended invocations of a function again. */
export async function rerun(remote: Remote, id: string, options: RerunOptions): Promise<void> {
  const choice = required(options);
  const { status, version } = options;
  const answer = await remote.rerun(id, {
    ...{ ...choice, ...(choice.invocation_ids && !options.count ? {} : common(options)) },
    ...(status === undefined ? {} : { status }),
    ...(version === undefined ? {} : { version: versionOf(version) }),
  });
  if (answer.rerun) return follow(remote, id, answer.rerun, options.wait);
  say(`${answer.queued_count} invocations run again, ${answer.skipped_count} cannot.`);
}

function versionOf(text: string): string | number {
  if (text === 'original' || text === 'current') return text;
  if (/^[1-9]\d{0,8}$/.test(text)) return Number(text);
  throw new UsageError(
    `--function-version: ${JSON.stringify(text)} is neither a version, nor "original" or "current".`,
  );
}

export interface DeadLetterOptions extends Omit<ChoiceOptions, 'id'> {
  limit?: string;
  json?: boolean;
}

/** Lists failed invocations that nobody has done anything about. */
export async function deadLetters(remote: Remote, id: string, options: DeadLetterOptions): Promise<void> {
  const { limit, json, after, before, search } = options;
  const choice = { after, before, search } as ChoiceOptions;
  if (limit !== undefined && !/^[1-9]\d{0,3}$/.test(limit)) {
    throw new UsageError(`--limit: ${JSON.stringify(limit)} is not a whole number from 1.`);
  }
  const query = { ...(chosen(choice) as Record<string, string>), ...(limit === undefined ? {} : { limit }) };
  const found = await remote.deadLetters(id, query);
  for (const one of found) json ? sayJson(one) : say(lineOf(one));
  if (found.length === 0) remark('Nothing has failed that still needs somebody.');
}

function lineOf({ id, finished_at, event_id, distinct_id, attempts, error }: RemoteInvocation): string {
  const status = attempts.at(-1)?.status ?? 'no answer';
  return `${id}  ${finished_at}  event ${event_id ?? '-'} of ${distinct_id ?? '-'}  ${status}  ${error ?? ''}`;
}

/** Says that failed invocations need nothing more, or ends waiting ones. */
export async function settle(
  remote: Remote,
  id: string,
  what: 'dismiss' | 'cancel',
  options: ChoiceOptions,
): Promise<void> {
  const count = await remote.settle(id, what, required(options));
  say(`${count} invocations ${what === 'dismiss' ? 'dismissed' : 'cancelled'}.`);
}
