// The API of an installation, for commands that also run elsewhere: in a checkout, or in somebody's CI.
import type { Command } from 'commander';
import { clientVariables } from '../config.ts';
import { CommandError, UsageError } from './context.ts';

/** The API has refused a request. */
export class RemoteRefusal extends CommandError {
  override name = 'RemoteRefusal';
  readonly status: number;
  /** The field that is wrong; `__` joins levels. */
  readonly field: string | null;
  /** Says more, such as where in the program. */
  readonly reason: string | null;

  constructor(message: string, status: number, field: string | null = null, reason: string | null = null) {
    super(message);
    this.status = status;
    this.field = field;
    this.reason = reason;
  }
}

export interface Access {
  url: string;
  key: string;
  project: string;
}

/** What a user says of where the API is. */
export interface Where {
  url?: string;
  key?: string;
  project?: string;
}

/** Adds the options that say where the API is. */
export const addWhere = (command: Command): Command =>
  command
    .option('--url <url>', 'the URL of the installation')
    .option('--key <key>', 'a personal API key; better set SLUICE_API_KEY')
    .option('--project <id>', 'the id of the project');

const TIMEOUT_MILLISECONDS = 60_000;
/** Checks where the API is. Throws a UsageError if something is missing or cannot be right. */
export function accessOf(given: Partial<Record<keyof Access, string | undefined>>): Access {
  const { url, key, project } = given;
  if (!url) throw new UsageError('Say where Sluice is: set SLUICE_URL, or use --url.');
  if (!key) throw new UsageError('Set SLUICE_API_KEY to a personal API key, or use --key.');
  if (!project) throw new UsageError('Say which project: set SLUICE_PROJECT_ID, or use --project.');
  const parsed = URL.parse(url);
  if (!parsed || !/^https?:$/.test(parsed.protocol)) {
    throw new UsageError('The URL of Sluice must begin with http:// or https://.');
  }
  if (parsed.username || parsed.password || parsed.search || parsed.hash) {
    throw new UsageError('The URL of Sluice must have no user, password, query or fragment.');
  }
  if (!/^[\x21-\x7e]+$/.test(key))
    throw new UsageError('The key contains a space or another character that no key has.');
  if (!/^(\d{1,9}|@current)$/.test(project)) {
    throw new UsageError(`--project: ${JSON.stringify(project)} is not the id of a project.`);
  }
  return { url: parsed.href.replace(/\/+$/, ''), key, project };
}

/** Finds out where the API is. The key leaves the list of processes, where everybody on the machine could read it. */
export function accessFrom({ url, key, project }: Where, command: string): Access {
  if (key !== undefined) process.title = `sluice ${command}`;
  const given = clientVariables(process.env);
  return accessOf({
    url: url ?? given.SLUICE_URL,
    key: key ?? given.SLUICE_API_KEY,
    project: project ?? given.SLUICE_PROJECT_ID,
  });
}

/** Asks the API about the project, and returns its answer. No error contains the key. */
export async function askProject(
  access: Access,
  method: string,
  path: string,
  body?: object,
): Promise<unknown> {
  const signal = AbortSignal.timeout(TIMEOUT_MILLISECONDS);
  const answer = await request(access, { method, path, body, signal });
  const text = await answer.text().catch((error: Error) => {
    throw silent(access, error);
  });
  const parsed = parse(text);
  if (answer.ok && parsed) return parsed;
  throw refusalOf(access, answer.status, parsed);
}

/** Asks the API for a file, and returns its bytes. They fail if the file breaks off. */
export async function downloadFromProject(
  access: Access,
  path: string,
  body: object,
): Promise<ReadableStream<Uint8Array>> {
  const answer = await request(access, { method: 'POST', path, body });
  if (answer.ok && answer.body) return answer.body;
  throw refusalOf(access, answer.status, parse(await answer.text().catch(() => '')));
}

interface Sent {
  method: string;
  path: string;
  body?: object | undefined;
  signal?: AbortSignal;
}

async function request(access: Access, { method, path, body, signal }: Sent): Promise<Response> {
  const { url, key, project } = access;
  try {
    return await fetch(`${url}/api/projects/${project}/${path}`, {
      method,
      headers: {
        authorization: `Bearer ${key}`,
        ...(body ? { 'content-type': 'application/json' } : {}),
      },
      ...(body ? { body: JSON.stringify(body) } : {}),
      // The key goes to nobody else.
      redirect: 'manual',
      ...(signal && { signal }),
    });
  } catch (error) {
    throw silent(access, error as Error);
  }
}

const clean = ({ key }: Access, told: string): string => told.replaceAll(key, '***');

function silent(access: Access, { cause, message }: Error & { cause?: unknown }): CommandError {
  const reason = (cause as Error | undefined)?.message || message;
  return new CommandError(clean(access, `${access.url} does not answer: ${reason}`));
}

function refusalOf(access: Access, status: number, answer: object | undefined): RemoteRefusal {
  const { detail, attr, reason } = (answer ?? {}) as { detail?: string; attr?: string; reason?: string };
  const told = typeof detail === 'string' ? detail : `It does not answer like Sluice.`;
  const message = typeof attr === 'string' ? told : `${access.url} answers with ${status}: ${told}`;
  const more = reason ? clean(access, reason) : null;
  return new RemoteRefusal(clean(access, message), status, attr ?? null, more);
}

function parse(text: string): object | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null ? value : undefined;
  } catch {
    return undefined;
  }
}
