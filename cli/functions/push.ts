import path from 'node:path';
import { RemoteRefusal } from '../access.ts';
import { CommandError, remark, say } from '../context.ts';
import { isSame, namedVariables } from './definition.ts';
import {
  FilesError,
  fingerprint,
  jsonText,
  type LocalFunction,
  readFunctions,
  readRecord,
  writeRecord,
  writeText,
} from './files.ts';
import { type Environment, faultText, isAboutFunction, missingVariables, payloadOf } from './payload.ts';
import type { Remote, RemoteFunction } from './remote.ts';

interface Planned {
  local: LocalFunction;
  payload: Record<string, unknown>;
  remote: RemoteFunction | undefined;
  action: 'create' | 'change' | 'none';
  /** The version on which the change is based. Undefined: it overwrites what is there. */
  base: string | undefined;
}

export interface PushOptions {
  env: Environment;
  dryRun: boolean;
  /** Overwrites changes that others have made on the server. */
  force: boolean;
}

const CONFLICT = 409;

/**
 * Creates or changes functions as their files say. All files are read and checked before anything is written, so a fault
 * in one of them changes nothing.
 */
export async function push(api: Remote, files: readonly string[], options: PushOptions): Promise<void> {
  const locals = readFunctions(files);
  const { env, dryRun } = options;
  refuseAll(locals.flatMap((one) => missingVariables(one, env)));
  refuseAll(repeated(locals));
  const remotes = await api.all();
  const planned = locals.map((local) => plan(local, remotes, options));
  refuseAll(planned.flatMap((one) => (typeof one === 'string' ? [one] : [])));
  const all = planned.filter((one) => typeof one !== 'string');
  refuseAll(await check(api, all));
  if (!options.force) refuseAll(all.flatMap((one) => overwritten(one) ?? []));
  for (const one of all) await (dryRun ? tell(one, true) : write(api, one));
  if (all.length === 0) say('There are no functions in these files.');
}

function refuseAll(faults: readonly string[]): void {
  if (faults.length > 0) throw new FilesError([...faults, 'Nothing was pushed.']);
}

function repeated(locals: readonly LocalFunction[]): string[] {
  const files = new Map<string, string>();
  return locals.flatMap(({ definition: { id }, definitionFile }) => {
    if (id === undefined) return [];
    const other = files.get(id);
    files.set(id, definitionFile);
    return other
      ? [`${definitionFile}: it has the same id as ${other}. Remove the id from one of them.`]
      : [];
  });
}

/** Decides what is done with a function. Returns a sentence if it cannot be done. */
function plan(
  local: LocalFunction,
  remotes: readonly RemoteFunction[],
  { env, force }: PushOptions,
): Planned | string {
  const { definition, definitionFile, program } = local;
  const { id, name, type } = definition;
  const remote = remotes.find((one) => one.id === id);
  if (id !== undefined && !remote) {
    return `${definitionFile}: the project has no function with the id ${id}. Remove the id to create the function.`;
  }
  const payload = payloadOf(local, env);
  if (remote) {
    const isOther = namedVariables(definition).length > 0 || !isSame(program, definition, remote);
    const base = force ? undefined : readRecord(path.dirname(definitionFile))[remote.id]?.updated_at;
    return { local, payload, remote, action: isOther ? 'change' : 'none', base };
  }
  const same = remotes.find((one) => one.name === name && one.type === type);
  if (same && !force) {
    return (
      `${definitionFile}: the project already has a function of this name and type. Add "id": "${same.id}" to change it, ` +
      'or use --force to create another one.'
    );
  }
  if (definition.mappings?.length === 0) {
    return `${definitionFile}: mappings: a new function cannot begin with an empty list. Leave it out.`;
  }
  return { local, payload, remote: undefined, action: 'create', base: undefined };
}

/** Lets the server check every function that would be written. Returns what is wrong with them. */
async function check(api: Remote, all: readonly Planned[]): Promise<string[]> {
  const faults: string[] = [];
  for (const { local, payload, remote, action } of all) {
    if (action === 'none') continue;
    try {
      for (const one of await api.check(remote?.id, payload)) remark(`${local.programFile}: warning: ${one}`);
    } catch (error) {
      if (!isAboutFunction(error)) throw error;
      faults.push(faultText(local, error));
    }
  }
  return faults;
}

/** Says that somebody has changed a function on the server since these files were pulled or pushed. */
function overwritten({ local, remote, action, base }: Planned): string | undefined {
  if (!remote || action !== 'change' || base === remote.updated_at) return undefined;
  return base === undefined
    ? `${local.definitionFile}: nothing says on which version of the function the files are based. Pull it into another ` +
        'folder to compare, or use --force to overwrite what the server has.'
    : conflict(local);
}

const conflict = ({ definitionFile }: LocalFunction): string =>
  `${definitionFile}: somebody has changed the function on the server since these files were pulled or pushed. Pull it ` +
  'into another folder to compare, or use --force to overwrite the change.';

function tell({ local, action }: Planned, isPlan: boolean, id = local.definition.id): void {
  const words = isPlan
    ? { create: 'would create', change: 'would change', none: 'unchanged' }
    : { create: 'created', change: 'changed', none: 'unchanged' };
  const secrets = namedVariables(local.definition).length > 0 && action !== 'none' ? ', with secrets' : '';
  say(`${words[action].padEnd(isPlan ? 12 : 9)}  ${local.programFile}  ${id ?? ''}${secrets}`.trimEnd());
}

async function write(api: Remote, one: Planned): Promise<void> {
  const { local, payload, remote, action, base } = one;
  let after: RemoteFunction;
  try {
    // What is the same may have another version by now.
    if (remote && action === 'none') after = remote;
    else after = remote ? await api.change(remote.id, payload, base) : await api.create(payload);
  } catch (error) {
    if (error instanceof RemoteRefusal && error.status === CONFLICT) throw new CommandError(conflict(local));
    if (isAboutFunction(error)) throw new CommandError(faultText(local, error));
    throw error;
  }
  let { text } = local;
  if (!remote) {
    text = jsonText({ id: after.id, ...(JSON.parse(text) as object) });
    writeText(local.definitionFile, text);
  }
  const directory = path.dirname(local.definitionFile);
  const files = fingerprint(local.program, text);
  writeRecord(directory, { ...readRecord(directory), [after.id]: { updated_at: after.updated_at, files } });
  tell(one, false, after.id);
}
