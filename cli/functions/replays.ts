import { setTimeout as pause } from 'node:timers/promises';
import { CommandError, remark, say, UsageError } from '../context.ts';
import type { Remote, RemoteReplay } from './remote.ts';

export interface BeginOptions {
  after?: string;
  before?: string;
  properties?: string;
  rate?: string;
  count?: boolean;
  wait?: boolean;
}

const ASK_EVERY = 1_000;

/** Runs a function for past events. */
export function replay(remote: Remote, id: string, options: BeginOptions): Promise<void> {
  const { after, before } = options;
  if (!after || !before) throw new UsageError('Say which events: --after <time> and --before <time>.');
  return begin(remote, id, options, () =>
    remote.beginReplay(id, {
      after: instant('after', after),
      before: instant('before', before),
      ...common(options),
    }),
  );
}

/** Runs a function for persons. */
export function broadcast(remote: Remote, id: string, options: BeginOptions): Promise<void> {
  const properties = options.properties === undefined ? {} : { properties: conditions(options.properties) };
  return begin(remote, id, options, () => remote.beginBroadcast(id, { ...properties, ...common(options) }));
}

export const common = ({ rate, count }: BeginOptions) => ({
  ...(rate === undefined ? {} : { rate_per_second: rateOf(rate) }),
  dry_run: count === true,
});

function rateOf(text: string): number | null {
  if (text === 'none') return null;
  if (!/^[1-9]\d{0,4}$/.test(text))
    throw new UsageError(`--rate: ${JSON.stringify(text)} is neither a whole number from 1 nor "none".`);
  return Number(text);
}

/** Reads a time. One that is relative to now, such as `-7d`, is the server's to read. */
export function instant(option: string, text: string): string {
  if (/^-\d+[hdw]$/.test(text)) return text;
  const at = new Date(text);
  if (Number.isNaN(at.getTime())) throw new UsageError(`--${option}: ${JSON.stringify(text)} is not a time.`);
  return at.toISOString();
}

function conditions(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new UsageError(`--properties: not JSON: ${(error as Error).message}`);
  }
}

async function begin(
  remote: Remote,
  id: string,
  { wait }: BeginOptions,
  start: () => Promise<RemoteReplay>,
): Promise<void> {
  await follow(remote, id, await start(), wait);
}

/** Says what has begun, and with `wait` what came of it. */
export async function follow(
  remote: Remote,
  id: string,
  begun: RemoteReplay,
  wait: boolean | undefined,
): Promise<void> {
  remark(`${begun.kind} ${begun.id} has begun.`);
  let now = begun;
  while (wait && (now.status === 'running' || now.status === 'paused')) {
    await pause(ASK_EVERY);
    now = await remote.replay(id, begun.id);
  }
  say(lineOf(now));
  if (now.status === 'failed' || now.status === 'cancelled') {
    throw new CommandError(`It was not completed: ${now.reason ?? now.status}`);
  }
}

export interface SteerOptions {
  pause?: boolean;
  resume?: boolean;
  cancel?: boolean;
}

/** Lists the replays, broadcasts and reruns of a function, or shows or steers one of them. */
export async function replays(
  remote: Remote,
  id: string,
  replayId: string | undefined,
  options: SteerOptions,
): Promise<void> {
  const steps = (['pause', 'resume', 'cancel'] as const).filter((step) => options[step]);
  if (steps.length > 1) throw new UsageError('Say one of --pause, --resume and --cancel.');
  const [step] = steps;
  if (step && !replayId) throw new UsageError(`Say which one to ${step}: functions replays <id> <replay>.`);
  if (replayId) {
    say(lineOf(await (step ? remote.steerReplay(id, replayId, step) : remote.replay(id, replayId))));
    return;
  }
  const all = await remote.replays(id);
  for (const one of all) say(lineOf(one));
  if (all.length === 0) remark('There are no replays, broadcasts or reruns of this function.');
}

const WHAT = { replay: 'events', broadcast: 'persons', rerun: 'ended invocations' } as const;

function lineOf(one: RemoteReplay): string {
  const of = one.total === null ? '' : ` of ${one.total}`;
  const did = one.dry_run ? 'counted' : 'queued';
  const held = one.held === null ? '' : `  waits for the ${one.held}`;
  const reason = one.reason === null ? '' : `  ${one.reason}`;
  return (
    `${one.id}  ${one.kind}  ${one.status}  ${one.scanned}${of} ${WHAT[one.kind]} looked at, ${one.matched} match, ` +
    `${one.queued} invocations ${did}${held}${reason}`
  );
}
