import { lstatSync } from 'node:fs';
import path from 'node:path';
import { CommandError, remark, say } from '../context.ts';
import { type Definition, isSame, toFile } from './definition.ts';
import {
  endingOf,
  fingerprint,
  jsonText,
  type LocalFunction,
  programsIn,
  readFunctions,
  readRecord,
  writeRecord,
  writeText,
} from './files.ts';
import { freeStem } from './names.ts';
import type { Remote, RemoteFunction } from './remote.ts';

type Json = Record<string, unknown>;

/** Says for each secret input where its value comes from, if the file has said so. */
function withVariables(shown: Json, local: Definition | undefined): Json {
  const named = (all: unknown, own: Definition['inputs'] | null | undefined) =>
    Object.fromEntries(
      Object.entries((all ?? {}) as Json).map(([key, one]) => {
        const env = own?.[key]?.env;
        return [key, env !== undefined && (one as Json).secret === true ? { env } : one];
      }),
    );
  const mappings = (shown.mappings as Json[] | undefined)?.map((one, index) =>
    one.inputs ? { ...one, inputs: named(one.inputs, local?.mappings?.[index]?.inputs) } : one,
  );
  return {
    ...shown,
    ...(shown.inputs ? { inputs: named(shown.inputs, local?.inputs) } : {}),
    ...(mappings ? { mappings } : {}),
  };
}

interface Planned {
  remote: RemoteFunction;
  stem: string;
  text: string;
  local: LocalFunction | undefined;
  state: 'same' | 'write' | 'changed here';
}

/** Writes the functions of a project into a folder. Files with changes that the server does not have stay, unless forced. */
export async function pull(
  api: Remote,
  directory: string,
  { ids, force }: { ids: readonly string[]; force: boolean },
): Promise<void> {
  const all = await api.all();
  const wanted = ids.length === 0 ? all : all.filter(({ id }) => ids.includes(id));
  const missing = ids.filter((id) => !all.some((one) => one.id === id));
  if (missing.length > 0) throw new CommandError(`The project has no function with the id ${missing[0]}.`);
  const locals = readFunctions(programsIn(directory));
  const record = readRecord(directory);
  const taken = new Set<string>();
  const planned = wanted.map((remote): Planned => {
    const own = locals.filter(({ definition }) => definition.id === remote.id);
    if (own.length > 1) {
      throw new CommandError(
        `Two files say that they are the function ${remote.id}: ${own.map((one) => one.definitionFile).join(' and ')}.`,
      );
    }
    const [local] = own;
    const stem = local?.stem ?? newStem(directory, remote, taken);
    taken.add(stem);
    const text = jsonText(withVariables(toFile(remote), local?.definition));
    return { remote, stem, text, local, state: stateOf(remote, text, local, record[remote.id]?.files) };
  });
  const kept = planned.filter(({ state }) => state === 'changed here');
  if (kept.length > 0 && !force) {
    throw new CommandError(
      `${kept.map(({ stem }) => `${stem} was changed here, and the server has something else.`).join('\n')}\n` +
        'Nothing was written. Push the changes, or use --force to overwrite them.',
    );
  }
  for (const { remote, stem, text, local, state } of planned) {
    const program = stem + endingOf(remote.type);
    if (state !== 'same') {
      writeText(program, remote.hog);
      writeText(`${stem}.json`, text);
    }
    say(`${state === 'same' ? 'unchanged' : local ? 'updated  ' : 'new      '}  ${program}`);
    const files =
      state === 'same' && local ? fingerprint(local.program, local.text) : fingerprint(remote.hog, text);
    record[remote.id] = { updated_at: remote.updated_at, files };
  }
  writeRecord(directory, record);
  for (const { definition, programFile } of locals) {
    const { id } = definition;
    if (id !== undefined && !all.some((one) => one.id === id)) {
      remark(`${programFile}: the project has no function with the id ${id}.`);
    }
  }
  if (wanted.length === 0) say('The project has no functions.');
}

function newStem(directory: string, { name, id, type }: RemoteFunction, taken: ReadonlySet<string>): string {
  const exists = (file: string) => lstatSync(file, { throwIfNoEntry: false }) !== undefined;
  const isTaken = (one: string) => {
    const stem = path.join(directory, one);
    return taken.has(stem) || exists(`${stem}.json`) || exists(stem + endingOf(type));
  };
  return path.join(directory, freeStem(name, id, isTaken));
}

function stateOf(
  remote: RemoteFunction,
  text: string,
  local: LocalFunction | undefined,
  before: string | undefined,
): Planned['state'] {
  if (!local) return 'write';
  const hasSame = local.program === remote.hog && local.text === text;
  if (hasSame || isSame(local.program, local.definition, remote)) return 'same';
  return before === fingerprint(local.program, local.text) ? 'write' : 'changed here';
}
