import { isUuid } from '../../values/uuid.ts';
import { CommandError, remark, say, sayJson, UsageError } from '../context.ts';
import { parseExpectation, unexpected } from './compare.ts';
import { definition } from './definition.ts';
import { type LocalFunction, parseJson, readFunction, readText } from './files.ts';
import { type Environment, faultText, isAboutFunction, missingVariables, payloadOf } from './payload.ts';
import type { Remote } from './remote.ts';
import type { Tried, TriedFetch } from './tried.ts';

export interface TryOptions {
  event?: string | undefined;
  newest?: boolean | undefined;
  eventFile?: string | undefined;
  real?: boolean | undefined;
  mock?: boolean | undefined;
  expect?: string | undefined;
  json?: boolean | undefined;
}

/** The exit codes of a test. Wrong use has 2. */
const EXIT = { success: 0, error: 1, skipped: 3 } as const;

/** Which event to try with, as the API wants it. */
function chosenEvent({ event, newest, eventFile }: TryOptions): object {
  const given = [event !== undefined, newest === true, eventFile !== undefined].filter(Boolean).length;
  if (given !== 1)
    throw new UsageError('Choose the event with one of --event UUID, --newest and --event-file FILE.');
  if (event !== undefined) {
    if (!isUuid(event)) throw new UsageError(`--event: ${JSON.stringify(event)} is not a uuid.`);
    return { event_id: event };
  }
  if (eventFile === undefined) return { use_newest_event: true };
  const value = readJson(eventFile) as { event?: unknown } | null;
  if (typeof value?.event === 'string') return { globals: { event: value } };
  if (typeof value?.event === 'object' && value.event !== null) return { globals: value };
  throw new UsageError(
    `${eventFile}: this is no event. Write {"event": "name", "properties": {…}}, or {"event": {…}, "person": {…}}.`,
  );
}

/** Reads a file that the user names as an option. */
function readJson(file: string): unknown {
  try {
    return parseJson(readText(file), file);
  } catch (error) {
    throw error instanceof UsageError ? error : new UsageError((error as Error).message);
  }
}

/** Runs a function of a file with one event on the server, which stores nothing, and tells what became of it. */
export async function tryFile(
  api: Remote,
  file: string,
  options: TryOptions,
  env: Environment,
): Promise<void> {
  if (options.real && options.mock) throw new UsageError('Use either --mock or --real.');
  const event = chosenEvent(options);
  const expected =
    options.expect === undefined ? undefined : parseExpectation(readJson(options.expect), options.expect);
  const local = readFunction(file, definition.parse({ name: null }));
  const { id } = local.definition;
  const missing = missingVariables(local, env);
  // A function that the server has keeps its secrets.
  if (id === undefined && missing.length > 0) throw new UsageError(missing.join('\n'));
  const tried = await run(api, local, {
    ...{ configuration: payloadOf(local, env), mock_async_functions: options.real !== true },
    ...event,
  });
  if (!tried) {
    process.exitCode = EXIT.skipped;
    return;
  }
  const wrong = expected ? unexpected(expected, tried) : [];
  if (options.json) sayJson(expected ? { ...tried, unexpected: wrong } : tried, 2);
  else for (const line of [...report(local, tried), ...verdict(wrong, expected !== undefined)]) say(line);
  // Who expects an error is content with it.
  const isAsExpected = expected?.status === tried.status;
  process.exitCode = wrong.length > 0 ? EXIT.error : isAsExpected ? EXIT.success : EXIT[tried.status];
}

/** Returns undefined if no stored event matches the filters. */
async function run(api: Remote, local: LocalFunction, body: object): Promise<Tried | undefined> {
  try {
    return (await api.run(local.definition.id, body)) as Tried;
  } catch (error) {
    if (!isAboutFunction(error)) throw error;
    const { field, message } = error;
    if (field === 'event_id') throw new CommandError(message);
    if (field !== 'use_newest_event') throw new CommandError(faultText(local, error));
    remark(message);
    return undefined;
  }
}

const verdict = (wrong: readonly string[], isCompared: boolean): string[] => {
  if (!isCompared) return [];
  return wrong.length === 0 ? ['as expected'] : ['not as expected:', ...wrong.map((one) => `  ${one}`)];
};

const indented = (text: string, by: string): string => text.split('\n').join(`\n${by}`);
const bodyText = (body: unknown): string => (typeof body === 'string' ? body : JSON.stringify(body));

function report({ programFile }: LocalFunction, tried: Tried): string[] {
  const { event, status, duration_ms: duration, result } = tried;
  const lines = [
    `${status}  ${programFile}  ${duration} ms, event ${JSON.stringify(event.event ?? '')} ${event.uuid ?? ''}`.trimEnd(),
  ];
  for (const { level, message } of tried.logs)
    lines.push(`  ${level.padEnd(5)}  ${indented(message, '         ')}`);
  for (const { mapping, fetches, captured, status: own } of tried.invocations) {
    if (mapping !== null) lines.push(`  mapping ${JSON.stringify(mapping)}: ${own}`);
    for (const one of fetches) lines.push(...fetchLines(one));
    for (const one of captured) lines.push(`  captured (not stored): ${JSON.stringify(one)}`);
  }
  for (const one of tried.errors) lines.push(`  ${programFile}: ${indented(one, '    ')}`);
  if (status !== 'skipped') lines.push(`  result: ${indented(JSON.stringify(result, null, 2), '  ')}`);
  return lines;
}

function fetchLines({
  method,
  url,
  headers,
  body,
  response,
  error,
  mocked,
  duration_ms,
}: TriedFetch): string[] {
  const answer = response ? String(response.status) : (error ?? 'no answer');
  return [
    `  ${method} ${url} → ${answer}${mocked ? ' (not sent)' : `, ${duration_ms} ms`}`,
    ...Object.entries(headers).map(([name, value]) => `    ${name}: ${value}`),
    ...(body === null ? [] : [`    > ${indented(body, '    > ')}`]),
    ...(response === null || mocked ? [] : [`    < ${indented(bodyText(response.body), '    < ')}`]),
  ];
}
